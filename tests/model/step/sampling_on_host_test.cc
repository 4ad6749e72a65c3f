#include "model/step/sampling_on_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/model/sampling/some_kinds.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Probabilities 0.1, 0.4, 0.3, 0.2.
const std::vector<float> kFourIds = {std::log(0.1f), std::log(0.4f),
                                     std::log(0.3f), std::log(0.2f)};

// A segment as the step was given it.
struct Fed {
  int32_t slot;
  int64_t position;
  std::vector<int32_t> tokens, outputs;
  bool operator==(const Fed&) const = default;
};

// Gives every row that is wanted the same distribution, and notes what it is
// told.
class NotingStep final : public ModelStep {
 public:
  struct Notes {
    std::vector<float> logprobs = kFourIds;
    VocabularyBins bins = {{4}};
    std::vector<std::pair<int64_t, size_t>> announced;
    bool throws = false;
    bool depends_on_no_cut = true;
    std::vector<Fed> fed;
    std::vector<std::pair<int32_t, int64_t>> derived;
    absl::Status import;
  };

  explicit NotingStep(Notes* notes) : notes_(*notes) {}

  absl::Span<NextTokenDistribution* const> Run(
      absl::Span<const StepSegment> segments) override {
    if (notes_.throws) throw std::runtime_error("the device is gone");
    size_t wanted = 0;
    for (const StepSegment& segment : segments) {
      notes_.fed.push_back({segment.slot,
                            segment.position,
                            {segment.tokens.begin(), segment.tokens.end()},
                            {segment.outputs.begin(), segment.outputs.end()}});
      wanted += segment.outputs.size();
    }
    distribution_.emplace(notes_.logprobs, notes_.bins);
    results_.assign(wanted, &*distribution_);
    return results_;
  }
  void Clear(int32_t) override {}
  void Copy(int32_t, int32_t) override {}
  StateImage Export(int32_t, int64_t, int64_t) const override { return {}; }
  absl::Status Import(int32_t, const StateImage&) override {
    return notes_.import;
  }
  void EvaluateClusters(absl::Span<const ClusterOfRow> clusters) override {
    for (const ClusterOfRow& each : clusters) {
      notes_.announced.emplace_back(each.row, each.cluster);
    }
  }
  void Derive(int32_t slot, int64_t rows) override {
    notes_.derived.emplace_back(slot, rows);
  }
  bool derives() const override { return true; }
  bool depends_on_no_cut() const override { return notes_.depends_on_no_cut; }
  const RingGeometry& ring() const override { return ring_; }
  const StateIdentity& identity() const override { return identity_; }
  int64_t BytesPerSlot() const override { return 1; }

 private:
  Notes& notes_;
  const RingGeometry ring_;
  const StateIdentity identity_;
  std::optional<FullDistribution> distribution_;
  std::vector<NextTokenDistribution*> results_;
};

class SamplingOnHostTest : public ::testing::Test {
 protected:
  SamplingOnHostTest() {
    params_.temperature = 0;
    for (int32_t slot = 0; slot < 3; ++slot) Configure(slot, {});
  }

  void Configure(int32_t slot, const SampleContext& context) {
    step_->Configure(slot, params_, context);
  }

  std::vector<RowResult> Run(const std::vector<StepRow>& rows) {
    return step_->Queue(rows)->Collect().rows;
  }

  RowResult Draw(int32_t slot, int64_t position, int32_t token = 0) {
    return Run({Row(slot, position, token, RowKind::kDecode)})[0];
  }

  static StepRow Row(int32_t slot, int64_t position, int32_t token,
                     RowKind kind = RowKind::kPrefill) {
    StepRow row;
    row.slot = slot;
    row.position = position;
    row.token_id = token;
    row.kind = kind;
    return row;
  }

  SamplingParams params_;
  NotingStep::Notes notes_;
  std::unique_ptr<SamplingStep> step_ = SampleOnHost(
      std::make_unique<NotingStep>(&notes_), VocabularyBins{{4}}, 3);
};

TEST_F(SamplingOnHostTest, RowsOfASlotAreOneSegment) {
  Run({Row(2, 7, 1), Row(2, 8, 3, RowKind::kScore),
       Row(2, 9, 0, RowKind::kDecode), Row(0, 4, 2)});
  EXPECT_THAT(notes_.fed,
              ElementsAre(Fed{2, 7, {1, 3, 0}, {1, 2}}, Fed{0, 4, {2}, {}}));
}

TEST_F(SamplingOnHostTest, ADrawnTokenIsFedAsTheLastOne) {
  const RowResult drawn = Draw(1, 5);
  EXPECT_EQ(drawn.status, absl::OkStatus());
  EXPECT_EQ(drawn.token_id, 1);
  EXPECT_FLOAT_EQ(drawn.logprob, std::log(0.4f));
  Draw(1, 6, kLastSampled);
  EXPECT_EQ(notes_.fed.back(), (Fed{1, 6, {1}, {0}}));
}

TEST_F(SamplingOnHostTest, AScoreIsThatOfTheTargetAndDrawsNothing) {
  Draw(0, 4);
  StepRow score = Row(0, 5, 2, RowKind::kScore);
  score.score_target = 2;
  score.top_logprobs = 2;
  const RowResult result = Run({score})[0];
  EXPECT_EQ(result.token_id, 2);
  EXPECT_FLOAT_EQ(result.logprob, std::log(0.3f));
  ASSERT_EQ(result.top_logprobs.size(), 2u);
  EXPECT_EQ(result.top_logprobs[0].token_id, 1);
  EXPECT_EQ(result.top_logprobs[1].token_id, 2);
  Draw(0, 6, kLastSampled);
  EXPECT_THAT(notes_.fed.back().tokens, ElementsAre(1));
}

TEST_F(SamplingOnHostTest, NamedIdsAreReportedBehindTheBest) {
  const auto ids = std::make_shared<const std::vector<int32_t>>(
      std::vector<int32_t>{3, 1, 3});
  for (const RowKind kind : {RowKind::kDecode, RowKind::kScore}) {
    StepRow row = Row(0, 5, 2, kind);
    row.logprob_ids = ids;
    row.top_logprobs = 1;
    const RowResult result = Run({row})[0];
    std::vector<int32_t> reported;
    for (const TokenLogprob& each : result.top_logprobs) {
      reported.push_back(each.token_id);
      EXPECT_EQ(each.logprob, kFourIds[each.token_id]);
    }
    EXPECT_THAT(reported, ElementsAre(1, 3, 1, 3));
  }
}

TEST_F(SamplingOnHostTest, AllowedIdsLeaveTheModelsOwnLogprobs) {
  params_.allowed_token_ids = {0, 2};
  Configure(0, {});
  const RowResult result = Draw(0, 4);
  EXPECT_EQ(result.token_id, 2);
  EXPECT_EQ(result.logprob, kFourIds[2]);
}

// Behind 0 stands 1, behind 1 stands 2, behind 2 stands 0; 3 never does.
std::shared_ptr<const TokenKinds> Circle() {
  return TableOf({{"A", {{0, 0}}, {{"B"}}},
                  {"B", {{1, 1}}, {{"C"}}},
                  {"C", {{2, 2}}, {{"A"}}}},
                 4);
}

class FollowedKindsOnHost : public SamplingOnHostTest {
 protected:
  FollowedKindsOnHost() {
    step_ = SampleOnHost(std::make_unique<NotingStep>(&notes_), notes_.bins, 3,
                         Circle());
    params_.follow_kinds = true;
  }

  void Begin(int32_t slot, const std::vector<int32_t>& recent) {
    SampleContext context;
    context.recent_ids = recent;
    Configure(slot, context);
  }
};

TEST_F(FollowedKindsOnHost, EachTokenFollowsTheOneThatWasDrawnBefore) {
  for (const int32_t window : {0, 1, 64}) {
    params_.penalty_window = window;
    Begin(0, {3, 0});
    Begin(1, {1});
    std::vector<int32_t> drawn = {Draw(0, 4).token_id, Draw(1, 9).token_id};
    for (int64_t position = 5; position < 8; ++position) {
      drawn.push_back(Draw(0, position, kLastSampled).token_id);
    }
    drawn.push_back(Draw(1, 10, kLastSampled).token_id);
    EXPECT_THAT(drawn, ElementsAre(1, 2, 2, 0, 1, 0)) << window;
  }
}

TEST_F(FollowedKindsOnHost, AGuessIsJudgedByTheRuleBehindTheGuessBeforeIt) {
  params_.penalty_window = 0;
  Begin(0, {0});
  const std::vector<RowResult> rows =
      Run({Row(0, 4, 0, RowKind::kDecode), Row(0, 5, 1, RowKind::kDecode),
           Row(0, 6, 2, RowKind::kDecode), Row(0, 7, 1, RowKind::kDecode)});
  EXPECT_EQ(rows[0].token_id, 1);
  EXPECT_EQ(rows[1].token_id, 2);
  EXPECT_EQ(rows[2].token_id, 0);
  EXPECT_TRUE(rows[3].rejected);
  EXPECT_EQ(Draw(0, 7, kLastSampled).token_id, 1);
}

TEST_F(FollowedKindsOnHost, ARowForWhichNothingIsLeftFailsAlone) {
  params_.allowed_token_ids = {3};
  Begin(0, {0});
  params_.allowed_token_ids = {};
  Begin(1, {0});
  const std::vector<RowResult> rows =
      Run({Row(0, 4, 0, RowKind::kDecode), Row(1, 4, 0, RowKind::kDecode)});
  EXPECT_EQ(rows[0].status, NothingToSample());
  EXPECT_EQ(rows[1].token_id, 1);
}

TEST_F(FollowedKindsOnHost, AModelWithoutKindsCannotBeSampledByThem) {
  EXPECT_TRUE(step_->CanSample(params_, 0));
  step_ = SampleOnHost(std::make_unique<NotingStep>(&notes_), notes_.bins, 3);
  EXPECT_FALSE(step_->CanSample(params_, 0));
  params_.follow_kinds = false;
  EXPECT_TRUE(step_->CanSample(params_, 0));
}

// Each cluster's weights are read once, for the rows that are known to need it.
TEST(KnownClustersTest, ScoredAndNamedIdsAnnounceTheirClustersOnce) {
  NotingStep::Notes notes;
  notes.bins = {{1, 2, 4}};
  auto step = SampleOnHost(std::make_unique<NotingStep>(&notes), notes.bins, 1);
  StepRow score;
  score.kind = RowKind::kScore;
  score.score_target = 2;
  score.logprob_ids = std::make_shared<const std::vector<int32_t>>(
      std::vector<int32_t>{0, 3, 1, 1});
  StepRow decode;
  decode.kind = RowKind::kDecode;
  decode.position = 1;
  decode.logprob_ids =
      std::make_shared<const std::vector<int32_t>>(std::vector<int32_t>{1});
  step->Configure(0, {}, {});
  step->Queue({{score, decode}})->Collect();
  using Announced = std::pair<int64_t, size_t>;
  EXPECT_THAT(notes.announced,
              ElementsAre(Announced(0, 1), Announced(0, 0), Announced(1, 0)));
}

TEST_F(SamplingOnHostTest, AnUnknownInputStopsItsSlotOnly) {
  const auto rows = Run(
      {Row(0, 1, kLastSampled), Row(0, 2, 1), Row(1, 0, 3, RowKind::kDecode)});
  EXPECT_EQ(rows[0].status, UnknownInput());
  EXPECT_EQ(rows[1].status, UnknownInput());
  EXPECT_EQ(rows[2].status, absl::OkStatus());
  EXPECT_THAT(notes_.fed, ElementsAre(Fed{1, 0, {3}, {0}}));
}

TEST_F(SamplingOnHostTest, AStepOfWhichNothingRunsAsksTheModelNothing) {
  const std::vector<StepRow> rows = {Row(0, 1, kLastSampled)};
  EXPECT_THAT(step_->Queue(rows)->Collect().evaluated, IsEmpty());
  EXPECT_THAT(notes_.fed, IsEmpty());
}

TEST_F(SamplingOnHostTest, DerivingRowsOfASlotAreDerivedAtOnce) {
  EXPECT_TRUE(step_->derives());
  const StepRow derive = Row(2, 0, 0, RowKind::kDerive);
  const auto rows = Run({derive, derive, derive, Row(1, 3, 2)});
  EXPECT_THAT(notes_.derived, ElementsAre(std::pair(2, 3)));
  EXPECT_THAT(notes_.fed, ElementsAre(Fed{1, 3, {2}, {}}));
  for (const RowResult& row : rows) EXPECT_EQ(row.status, absl::OkStatus());
}

TEST_F(SamplingOnHostTest, VerifiesGuessesWhereBitsDependOnNoCut) {
  EXPECT_TRUE(step_->verifies_guesses());
  notes_.depends_on_no_cut = false;
  EXPECT_FALSE(step_->verifies_guesses());
}

TEST_F(SamplingOnHostTest, GuessesAreTakenAsFarAsTheyAreWhatIsDrawn) {
  // Greedy: id 1 is drawn, whatever is fed.
  const auto sample = RowKind::kDecode;
  const auto rows =
      Run({Row(0, 4, 3, sample), Row(0, 5, 1, sample), Row(0, 6, 2, sample),
           Row(0, 7, 1, sample), Row(1, 2, 0, sample)});
  EXPECT_EQ(rows[0].status, absl::OkStatus());
  EXPECT_EQ(rows[1].status, absl::OkStatus());
  EXPECT_EQ(rows[1].token_id, 1);
  EXPECT_FLOAT_EQ(rows[1].logprob, std::log(0.4f));
  EXPECT_FALSE(rows[0].rejected || rows[1].rejected);
  EXPECT_TRUE(rows[2].rejected);
  EXPECT_TRUE(rows[3].rejected);
  EXPECT_EQ(rows[4].status, absl::OkStatus());
  EXPECT_FALSE(rows[4].rejected);
  // All were fed at once; the last token is the last that was drawn.
  EXPECT_EQ(notes_.fed[0], (Fed{0, 4, {3, 1, 2, 1}, {0, 1, 2, 3}}));
  Draw(0, 6, kLastSampled);
  EXPECT_THAT(notes_.fed.back().tokens, ElementsAre(1));
}

TEST_F(SamplingOnHostTest, ARejectedGuessPenalisesNothing) {
  params_.presence_penalty = 2.0;
  Configure(0, {});
  const auto sample = RowKind::kDecode;
  // 1 is drawn, then 2, as they are without guesses.
  auto rows =
      Run({Row(0, 0, 0, sample), Row(0, 1, 1, sample), Row(0, 2, 0, sample)});
  EXPECT_EQ(rows[0].token_id, 1);
  EXPECT_EQ(rows[1].token_id, 2);
  EXPECT_TRUE(rows[2].rejected);
  rows = Run({Row(0, 2, kLastSampled, sample), Row(0, 3, 3, sample)});
  EXPECT_EQ(rows[0].token_id, 3);
  EXPECT_EQ(rows[1].token_id, 0);
}

TEST_F(SamplingOnHostTest, BehindARowThatFailedNoGuessIsKnownToBeRight) {
  notes_.logprobs[3] = kInfinity;
  const auto rows =
      Run({Row(0, 4, 3, RowKind::kDecode), Row(0, 5, 1, RowKind::kDecode)});
  EXPECT_EQ(rows[0].status, NotFinite(4));
  EXPECT_EQ(rows[1].status, UnknownInput());
}

TEST_F(SamplingOnHostTest, BannedIdsCountUntilTheSampledTokensPosition) {
  const std::vector<int32_t> banned = {1};
  SampleContext context;
  context.banned_ids = banned;
  context.position = 7;
  Configure(0, context);
  // The row at 5 samples the token of position 6, the row at 6 that of 7.
  EXPECT_EQ(Draw(0, 5).token_id, 2);
  EXPECT_EQ(Draw(0, 6).token_id, 1);
}

TEST_F(SamplingOnHostTest, PenaltiesSeeTheTokensDrawnBefore) {
  params_.presence_penalty = 2.0;
  Configure(0, {});
  std::vector<int32_t> tokens;
  for (int64_t position = 0; position < 4; ++position) {
    tokens.push_back(Draw(0, position).token_id);
  }
  EXPECT_THAT(tokens, ElementsAre(1, 2, 3, 0));
}

TEST_F(SamplingOnHostTest, OnlyThePenaltyWindowIsRemembered) {
  const std::vector<int32_t> recent = {1, 2, 3};
  params_.presence_penalty = 2.0;
  params_.penalty_window = 2;
  SampleContext context;
  context.recent_ids = recent;
  Configure(0, context);
  EXPECT_EQ(Draw(0, 0).token_id, 1);  // 2 and 3 are penalised
  EXPECT_EQ(Draw(0, 1).token_id, 2);  // 3 and 1
  EXPECT_EQ(Draw(0, 2).token_id, 3);  // 1 and 2
}

TEST_F(SamplingOnHostTest, NumbersThatAreNotFiniteFailTheRowAndItsToken) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity}) {
    notes_.logprobs = kFourIds;
    Draw(0, 5);
    notes_.logprobs[3] = bad;
    EXPECT_EQ(Draw(0, 6).status, NotFinite(6));
    notes_.logprobs = kFourIds;
    EXPECT_EQ(Draw(0, 7, kLastSampled).status, UnknownInput());
  }
}

TEST_F(SamplingOnHostTest, AnImpossibleIdIsNoError) {
  notes_.logprobs[0] = -kInfinity;
  EXPECT_EQ(Draw(0, 5).status, absl::OkStatus());
}

TEST_F(SamplingOnHostTest, SaysWhereNoTokenIsLeft) {
  notes_.logprobs.assign(4, -kInfinity);
  EXPECT_EQ(Draw(0, 5).status, NothingToSample());
}

TEST_F(SamplingOnHostTest, AStepThatThrowsIsNotQueuedAndLosesItsTokens) {
  Draw(0, 5);
  Draw(1, 5);
  notes_.throws = true;
  EXPECT_THROW(Draw(0, 6, kLastSampled), std::runtime_error);
  notes_.throws = false;
  EXPECT_EQ(Draw(0, 7, kLastSampled).status, UnknownInput());
  EXPECT_EQ(Draw(1, 6, kLastSampled).status, absl::OkStatus());
}

TEST_F(SamplingOnHostTest, WhatWritesASlotForgetsItsToken) {
  const auto image = std::make_shared<const StateImage>();
  const auto after = [&](auto write) {
    Draw(0, 5);
    write();
    return Draw(0, 6, kLastSampled).status;
  };
  const absl::Status forgotten = UnknownInput();
  EXPECT_EQ(after([&] { Configure(0, {}); }), forgotten);
  EXPECT_EQ(after([&] { step_->Clear(0); }), forgotten);
  EXPECT_EQ(after([&] { step_->Copy(1, 0); }), forgotten);
  EXPECT_EQ(after([&] { step_->Import(0, image); }), forgotten);
  notes_.import = absl::InvalidArgumentError("another model's");
  EXPECT_EQ(after([&] {
              EXPECT_EQ(step_->Import(0, image)->Bring(), notes_.import);
            }),
            absl::OkStatus());
}

}  // namespace
}  // namespace txl
