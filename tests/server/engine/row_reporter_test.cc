#include "server/engine/row_reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace txl {
namespace {

using ::testing::ElementsAre;

// Probabilities 0.1, 0.4, 0.3, 0.2.
std::vector<float> FourIds() {
  return {std::log(0.1f), std::log(0.4f), std::log(0.3f), std::log(0.2f)};
}

Sampler FourIdSampler() { return Sampler(VocabularyBins{{4}}); }

// ReportRow on a distribution that is known whole.
RowResult Report(const StepRow& row, const std::vector<float>& logprobs,
                 const Sampler& sampler, SlotState& state) {
  FullDistribution distribution(logprobs, sampler.bins());
  return ReportRow(row, distribution, sampler, state);
}

SlotState Greedy() {
  SlotState state;
  state.sampling.params.temperature = 0;
  return state;
}

StepRow Decode(int64_t position) {
  StepRow row;
  row.kind = RowKind::kDecode;
  row.position = position;
  return row;
}

TEST(RowReporterTest, ADecodedTokenBecomesTheLastSampledOne) {
  SlotState state = Greedy();
  const RowResult result = Report(Decode(5), FourIds(), FourIdSampler(), state);
  ASSERT_TRUE(result.status.ok());
  EXPECT_EQ(result.token_id, 1);
  EXPECT_FLOAT_EQ(result.logprob, std::log(0.4f));
  EXPECT_EQ(state.last_sampled, 1);
  EXPECT_THAT(state.sampling.recent_ids, ElementsAre(1));
}

TEST(RowReporterTest, AScoreIsThatOfTheTargetAndLeavesTheStateAlone) {
  SlotState state = Greedy();
  state.last_sampled = 3;
  StepRow row;
  row.kind = RowKind::kScore;
  row.score_target = 2;
  row.top_logprobs = 2;
  const RowResult result = Report(row, FourIds(), FourIdSampler(), state);
  ASSERT_TRUE(result.status.ok());
  EXPECT_EQ(result.token_id, 2);
  EXPECT_FLOAT_EQ(result.logprob, std::log(0.3f));
  ASSERT_EQ(result.top_logprobs.size(), 2);
  EXPECT_EQ(result.top_logprobs[0].token_id, 1);
  EXPECT_EQ(result.top_logprobs[1].token_id, 2);
  EXPECT_EQ(state.last_sampled, 3);
  EXPECT_TRUE(state.sampling.recent_ids.empty());
}

TEST(RowReporterTest, BannedIdsCountUntilTheSampledTokensPosition) {
  SlotState state = Greedy();
  state.sampling.banned_ids = {1};
  state.sampling.min_position = 7;
  // The row at 5 samples the token of position 6, the row at 6 that of 7.
  EXPECT_EQ(Report(Decode(5), FourIds(), FourIdSampler(), state).token_id, 2);
  EXPECT_EQ(Report(Decode(6), FourIds(), FourIdSampler(), state).token_id, 1);
}

TEST(RowReporterTest, PenaltiesSeeTheTokensSampledBefore) {
  SlotState state = Greedy();
  state.sampling.params.presence_penalty = 2.0;
  const Sampler sampler = FourIdSampler();
  std::vector<int32_t> tokens;
  for (int64_t position = 0; position < 4; ++position) {
    tokens.push_back(
        Report(Decode(position), FourIds(), sampler, state).token_id);
  }
  EXPECT_THAT(tokens, ElementsAre(1, 2, 3, 0));
}

TEST(RowReporterTest, OnlyThePenaltyWindowIsKept) {
  SlotState state = Greedy();
  state.sampling.params.penalty_window = 2;
  state.sampling.recent_ids = {9, 8, 7};
  Report(Decode(0), FourIds(), FourIdSampler(), state);
  EXPECT_THAT(state.sampling.recent_ids, ElementsAre(7, 1));
}

TEST(RowReporterTest, NumbersThatAreNotFiniteFailTheRow) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()}) {
    SlotState state = Greedy();
    state.last_sampled = 3;
    std::vector<float> logprobs = FourIds();
    logprobs[3] = bad;
    const RowResult result =
        Report(Decode(5), logprobs, FourIdSampler(), state);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal);
    EXPECT_EQ(state.last_sampled, std::nullopt);
    EXPECT_TRUE(state.sampling.recent_ids.empty());
  }
}

// Only knows which of its clusters are evaluated.
class EvaluatedClusters final : public NextTokenDistribution {
 public:
  explicit EvaluatedClusters(std::vector<bool> evaluated)
      : evaluated_(std::move(evaluated)) {}
  const VocabularyBins& bins() const override { return bins_; }
  absl::Span<const float> Words() override { return {}; }
  double ClusterMass(size_t) override { return 0; }
  absl::Span<const float> ClusterWords(size_t) override {
    ADD_FAILURE() << "counting must not evaluate";
    return {};
  }
  bool IsEvaluated(size_t c) const override { return evaluated_[c]; }

 private:
  const VocabularyBins bins_;
  const std::vector<bool> evaluated_;
};

TEST(CountTails, CountsTheRowsOfEveryCluster) {
  EvaluatedClusters both({true, true});
  EvaluatedClusters second({false, true});
  EvaluatedClusters none({false, false});
  NextTokenDistribution* const rows[] = {&both, &none, &second, &none};
  const SoftmaxTails tails = CountTails(rows, VocabularyBins{{4, 6, 9}});
  ASSERT_EQ(tails.size(), 2u);
  EXPECT_EQ(tails[0].computed, 1);
  EXPECT_EQ(tails[0].skipped, 3);
  EXPECT_EQ(tails[1].computed, 2);
  EXPECT_EQ(tails[1].skipped, 2);
}

TEST(CountTails, APlainSoftmaxHasNoCluster) {
  EvaluatedClusters plain({});
  NextTokenDistribution* const rows[] = {&plain};
  EXPECT_TRUE(CountTails(rows, VocabularyBins{{9}}).empty());
}

TEST(RowReporterTest, AnImpossibleIdIsNoError) {
  SlotState state = Greedy();
  std::vector<float> logprobs = FourIds();
  logprobs[0] = -std::numeric_limits<float>::infinity();
  EXPECT_TRUE(Report(Decode(5), logprobs, FourIdSampler(), state).status.ok());
}

}  // namespace
}  // namespace txl
