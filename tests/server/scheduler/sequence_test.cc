#include "server/scheduler/sequence.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "server/session/session_store.h"
#include "tests/fakes/fake_clock.h"

namespace txl {
namespace {

using Ids = std::vector<int32_t>;

// "P5@3" feeds id 5 at position 3; D decode, S>t score of target t, R rebuild;
// "*" the token sampled last.
std::string Text(const std::vector<StepRow>& rows) {
  std::vector<std::string> texts;
  for (const StepRow& row : rows) {
    const std::string id =
        row.token_id == kLastSampled ? "*" : absl::StrCat(row.token_id);
    std::string text = absl::StrCat(id, "@", row.position);
    switch (row.kind) {
      case RowKind::kPrefill:
        text = absl::StrCat("P", text);
        break;
      case RowKind::kDecode:
        text = absl::StrCat("D", text);
        break;
      case RowKind::kScore:
        text = absl::StrCat("S", text, ">", row.score_target);
        break;
      case RowKind::kRebuild:
        text = absl::StrCat("R", text);
        break;
      case RowKind::kDerive:
        ADD_FAILURE() << "a sequence plans tokens only";
        break;
    }
    texts.push_back(std::move(text));
  }
  return absl::StrJoin(texts, " ");
}

class SequenceTest : public ::testing::Test {
 protected:
  QueuedTurn Queued(TurnKind kind, const Ids& context, Ids input) {
    SessionLease lease = *store_.AcquireTemporary();
    if (!context.empty()) lease.Append(context);
    Turn turn{.kind = kind,
              .lease = std::move(lease),
              .input = std::move(input),
              .sampling = {},
              .stop = {},
              .identity = {},
              .resumed = nullptr,
              .deadline = std::nullopt,
              .sink = nullptr,
              .cancel = nullptr};
    turn.stop.max_tokens = 3;
    return {std::move(turn), absl::ZeroDuration()};
  }
  Sequence Make(TurnKind kind, const Ids& context, Ids input,
                int64_t rebuild_ids = 0) {
    return Sequence(Queued(kind, context, std::move(input)), rebuild_ids,
                    absl::ZeroDuration());
  }
  static std::string Plan(Sequence& sequence, int64_t count) {
    std::vector<StepRow> rows;
    sequence.PlanRows(count, 0, rows);
    return Text(rows);
  }
  static std::string PlanInput(Sequence& sequence) {
    return Plan(sequence, sequence.prompt_rows_left());
  }
  static RowResult Sampled(int32_t id) {
    RowResult result;
    result.token_id = id;
    return result;
  }

  FakeClock clock_;
  SessionStore store_{SessionStoreOptions(), &clock_};
};

// Ids 1 wait: the id behind one counts itself less ten. Id 0 begins a piece.
constexpr BeatPositions kSequenceBeats = {1, 10, 2, 0, 4, 100};

Ids TicksOf(const std::vector<StepRow>& rows) {
  Ids ticks;
  for (const StepRow& row : rows) ticks.push_back(row.ticks);
  return ticks;
}

TEST_F(SequenceTest, GenerateFeedsTheLastTokenAndTheWholeInput) {
  Sequence first = Make(TurnKind::kGenerate, {}, {5, 6, 7});
  EXPECT_EQ(PlanInput(first), "P5@0 P6@1 D7@2");
  Sequence later = Make(TurnKind::kGenerate, {1, 2, 3}, {5, 6});
  EXPECT_EQ(PlanInput(later), "P3@2 P5@3 D6@4");
  Sequence no_prompt = Make(TurnKind::kGenerate, {1, 2, 3}, {});
  EXPECT_EQ(PlanInput(no_prompt), "D3@2");
}

TEST_F(SequenceTest, AppendAndScoreLeaveTheVeryLastIdToBeFed) {
  Sequence append = Make(TurnKind::kAppend, {1, 2}, {5, 6});
  EXPECT_EQ(PlanInput(append), "P2@1 P5@2");
  Sequence score = Make(TurnKind::kScore, {1, 2}, {5, 6});
  EXPECT_EQ(PlanInput(score), "S2@1>5 S5@2>6");
  Sequence fresh = Make(TurnKind::kScore, {}, {5, 6});
  EXPECT_EQ(PlanInput(fresh), "S5@0>6");
  Sequence one = Make(TurnKind::kAppend, {}, {5});
  EXPECT_EQ(one.prompt_rows_left(), 0);
  EXPECT_TRUE(one.all_collected());
}

TEST_F(SequenceTest, ARebuildFeedsTheSessionsOwnTokensFirst) {
  Sequence generate = Make(TurnKind::kGenerate, {1, 2, 3}, {5}, 100);
  EXPECT_EQ(PlanInput(generate), "R1@0 R2@1 P3@2 D5@3");
  Sequence score = Make(TurnKind::kScore, {1, 2, 3}, {5}, 3);
  EXPECT_EQ(PlanInput(score), "R1@0 R2@1 S3@2>5");
}

TEST_F(SequenceTest, ARebuildFeedsNoMoreThanTheStateDependsOn) {
  Sequence generate = Make(TurnKind::kGenerate, {1, 2, 3, 4, 6}, {5}, 3);
  EXPECT_EQ(generate.prompt_rows_left(), 4);
  EXPECT_EQ(PlanInput(generate), "R3@2 R4@3 P6@4 D5@5");
}

TEST_F(SequenceTest, AStreamFeedsWhatTheDeviceSampledUntilTheLastToken) {
  Sequence sequence = Make(TurnKind::kGenerate, {}, {5, 6});
  EXPECT_EQ(sequence.phase(), SequencePhase::kPrompting);
  EXPECT_EQ(Plan(sequence, 1), "P5@0");
  EXPECT_EQ(sequence.phase(), SequencePhase::kPrompting);
  EXPECT_EQ(Plan(sequence, 1), "D6@1");
  EXPECT_EQ(sequence.phase(), SequencePhase::kDecoding);
  EXPECT_EQ(sequence.tokens_in_flight(), 1);
  EXPECT_EQ(Plan(sequence, 1), "D*@2");
  sequence.CollectRow(RowKind::kPrefill);
  sequence.CommitToken(Sampled(30), absl::ZeroDuration());
  sequence.CommitToken(Sampled(31), absl::ZeroDuration());
  EXPECT_EQ(sequence.tokens_in_flight(), 0);
  EXPECT_EQ(Plan(sequence, 1), "D31@3");
  EXPECT_EQ(sequence.phase(), SequencePhase::kCollecting);
  const auto last = sequence.CommitToken(Sampled(32), absl::ZeroDuration());
  EXPECT_EQ(last.reason, FinishReason::kMaxTokens);
  EXPECT_EQ(sequence.lease().token_ids().Last(9), (Ids{5, 6, 30, 31, 32}));
}

TEST_F(SequenceTest, NothingIsCommittedBeforeTheFirstToken) {
  Sequence sequence = Make(TurnKind::kGenerate, {1, 2}, {5, 6});
  PlanInput(sequence);
  EXPECT_EQ(sequence.rows_past_commit(), 3);
  EXPECT_FALSE(sequence.committed());
  EXPECT_EQ(sequence.lease().position(), 2);
  sequence.CommitToken(Sampled(9), absl::ZeroDuration());
  EXPECT_TRUE(sequence.committed());
  EXPECT_EQ(sequence.lease().position(), 5);
  EXPECT_EQ(sequence.rows_past_commit(), 0);
}

TEST_F(SequenceTest, RowsBeforeTheCommitCountTheOverlap) {
  const QueuedTurn generate = Queued(TurnKind::kGenerate, {1, 2}, {5, 6});
  EXPECT_EQ(InputRows(generate.turn), 3);
  EXPECT_EQ(RowsBeforeCommit(generate.turn, 1), 3);
  EXPECT_EQ(RowsBeforeCommit(generate.turn, 2), 4);
  const QueuedTurn append = Queued(TurnKind::kAppend, {1, 2}, {5, 6});
  EXPECT_EQ(RowsBeforeCommit(append.turn, 2), 2);
}

TEST_F(SequenceTest, SamplingSeesTheLastIdsAndBansStopsBeforeMinTokens) {
  QueuedTurn queued = Queued(TurnKind::kGenerate, {1, 2, 3}, {5, 6});
  queued.turn.sampling.penalty_window = 4;
  queued.turn.sampling.min_tokens = 2;
  queued.turn.stop.stop_token_ids = {40};
  queued.turn.stop.end_token_ids = {41};
  const Sequence sequence(std::move(queued), false, absl::ZeroDuration());
  const SlotSampling sampling = sequence.Sampling();
  EXPECT_EQ(sampling.recent_ids, (Ids{2, 3, 5, 6}));
  EXPECT_EQ(sampling.banned_ids, (Ids{40, 41}));
  EXPECT_EQ(sampling.min_position, 5 + 2);
}

TEST_F(SequenceTest, RecentIdsEndWithTheFedTokenAlsoWithoutPenalties) {
  QueuedTurn queued = Queued(TurnKind::kGenerate, {1, 2, 3}, {});
  queued.turn.sampling.penalty_window = 0;
  queued.turn.stop.end_token_ids = {41};
  queued.turn.stop.ignore_end_token = true;
  const Sequence sequence(std::move(queued), false, absl::ZeroDuration());
  EXPECT_EQ(sequence.Sampling().recent_ids, Ids{3});
  EXPECT_EQ(sequence.Sampling().banned_ids, Ids{});
}

TEST_F(SequenceTest, AdoptedTokensAreScoredAndCommittedWithTheFirstNewOne) {
  QueuedTurn queued = Queued(TurnKind::kGenerate, {1, 2}, {5, 6});
  queued.turn.stop.max_tokens = 5;
  queued.turn.sampling.penalty_window = 3;
  queued.turn.received = 2;
  queued.turn.adopted = {30, 31};
  Sequence sequence(std::move(queued), 0, absl::ZeroDuration());
  EXPECT_EQ(sequence.Started().replayed_tokens, 2);
  EXPECT_EQ(sequence.Sampling().recent_ids, (Ids{6, 30, 31}));
  EXPECT_EQ(PlanInput(sequence), "P2@1 P5@2 S6@3>30 S30@4>31 D31@5");
  EXPECT_EQ(Plan(sequence, 1), "D*@6");
  sequence.CollectRow(RowKind::kPrefill);
  sequence.CollectRow(RowKind::kPrefill);
  sequence.CollectScore(Sampled(30));
  sequence.CollectScore(Sampled(31));
  EXPECT_EQ(sequence.lease().position(), 2);
  const auto first = sequence.CommitToken(Sampled(32), absl::ZeroDuration());
  EXPECT_EQ(first.event.index, 2);
  EXPECT_TRUE(first.time.first);
  EXPECT_EQ(sequence.lease().token_ids().Last(9),
            (Ids{1, 2, 5, 6, 30, 31, 32}));
  EXPECT_EQ(sequence.rows_past_commit(), 1);
  EXPECT_FALSE(sequence.CommitToken(Sampled(33), absl::ZeroDuration())
                   .reason.has_value());
  EXPECT_EQ(Plan(sequence, 1), "D33@7");
  EXPECT_EQ(sequence.phase(), SequencePhase::kCollecting);
  EXPECT_EQ(sequence.CommitToken(Sampled(34), absl::ZeroDuration()).reason,
            FinishReason::kMaxTokens);
}

TEST_F(SequenceTest, WhereAdoptedTokensEndTheTurnTheLastOneIsLeftToBeFed) {
  QueuedTurn queued = Queued(TurnKind::kGenerate, {1, 2}, {5, 6});
  queued.turn.received = 3;
  queued.turn.adopted = {30, 31, 32};  // max_tokens
  Sequence sequence(std::move(queued), 3, absl::ZeroDuration());
  EXPECT_EQ(PlanInput(sequence), "R1@0 P2@1 P5@2 S6@3>30 S30@4>31 S31@5>32");
  EXPECT_EQ(sequence.phase(), SequencePhase::kCollecting);
  EXPECT_EQ(sequence.tokens_in_flight(), 0);
  for (const RowKind kind :
       {RowKind::kRebuild, RowKind::kPrefill, RowKind::kPrefill}) {
    sequence.CollectRow(kind);
  }
  for (const int32_t id : {30, 31, 32}) {
    EXPECT_FALSE(sequence.all_collected());
    sequence.CollectScore(Sampled(id));
  }
  ASSERT_TRUE(sequence.all_collected());
  EXPECT_EQ(sequence.reason(), FinishReason::kMaxTokens);
  EXPECT_TRUE(sequence.CommitInput(absl::ZeroDuration()));
  EXPECT_EQ(sequence.lease().token_ids().Last(9),
            (Ids{1, 2, 5, 6, 30, 31, 32}));
  EXPECT_EQ(sequence.rows_past_commit(), 0);
  EXPECT_TRUE(sequence.advanced());
}

TEST_F(SequenceTest, AdoptedTokensBehindTheEndContradictIt) {
  QueuedTurn queued = Queued(TurnKind::kGenerate, {1, 2}, {5, 6});
  queued.turn.received = 3;
  queued.turn.adopted = {30, 31, 32};
  queued.turn.stop.stop_token_ids = {31};
  EXPECT_TRUE(
      Sequence(std::move(queued), 0, absl::ZeroDuration()).contradicted());
}

TEST_F(SequenceTest, AdoptedTokensCountTowardsACountedToken) {
  QueuedTurn queued = Queued(TurnKind::kGenerate, {1, 2}, {5, 6});
  queued.turn.stop.max_tokens = 9;
  queued.turn.stop.token_count = {30, 3};
  queued.turn.received = 3;
  queued.turn.adopted = {30, 31, 30};
  Sequence sequence(std::move(queued), 0, absl::ZeroDuration());
  EXPECT_EQ(PlanInput(sequence), "P2@1 P5@2 S6@3>30 S30@4>31 S31@5>30 D30@6");
  for (int i = 0; i < 2; ++i) sequence.CollectRow(RowKind::kPrefill);
  for (const int32_t id : {30, 31, 30}) sequence.CollectScore(Sampled(id));
  EXPECT_EQ(sequence.CommitToken(Sampled(7), absl::ZeroDuration()).reason,
            std::nullopt);
  EXPECT_EQ(sequence.CommitToken(Sampled(30), absl::ZeroDuration()).reason,
            FinishReason::kStopToken);
}

TEST_F(SequenceTest, PendingRowsAreHandedOutOnce) {
  Sequence sequence = Make(TurnKind::kAppend, {1, 2}, {5, 6});
  PlanInput(sequence);
  sequence.CollectRow(RowKind::kPrefill);
  sequence.CollectRow(RowKind::kPrefill);
  EXPECT_TRUE(sequence.all_collected());
  EXPECT_EQ(sequence.TakePending().prefill, 2);
  EXPECT_EQ(sequence.TakePending().total(), 0);
}

TEST_F(SequenceTest, ATurnThatReturnsFeedsItsLastTokenAndGoesOn) {
  QueuedTurn queued = Queued(TurnKind::kGenerate, {4, 5}, {6, 7});
  queued.turn.stop.max_tokens = 4;
  queued.turn.sampling.penalty_window = 3;
  queued.turn.sampling.min_tokens = 2;
  Sequence sequence(std::move(queued), 0, absl::ZeroDuration());
  EXPECT_EQ(PlanInput(sequence), "P5@1 P6@2 D7@3");
  sequence.CommitToken(Sampled(8), absl::ZeroDuration());
  EXPECT_EQ(Plan(sequence, 1), "D8@4");
  sequence.CommitToken(Sampled(9), absl::ZeroDuration());
  EXPECT_TRUE(sequence.advanced());
  sequence.Return(/*rebuild_ids=*/0);
  EXPECT_FALSE(sequence.advanced());
  EXPECT_EQ(sequence.tokens_in_flight(), 0);
  EXPECT_EQ(sequence.rows_past_commit(), 0);
  EXPECT_EQ(sequence.Sampling().recent_ids, (Ids{7, 8, 9}));
  EXPECT_EQ(sequence.Sampling().min_position, 6);
  EXPECT_EQ(PlanInput(sequence), "D9@5");
  EXPECT_EQ(sequence.tokens_in_flight(), 1);
  EXPECT_EQ(sequence.phase(), SequencePhase::kDecoding);
  EXPECT_EQ(Plan(sequence, 1), "D*@6");
  EXPECT_EQ(sequence.phase(), SequencePhase::kCollecting);
  const auto third = sequence.CommitToken(Sampled(1), absl::ZeroDuration());
  EXPECT_EQ(third.event.index, 2);
  EXPECT_FALSE(third.time.first);
  EXPECT_EQ(third.time.prompt_tokens, 0);
  EXPECT_TRUE(sequence.advanced());
  const auto last = sequence.CommitToken(Sampled(2), absl::ZeroDuration());
  EXPECT_EQ(last.reason, FinishReason::kMaxTokens);
  EXPECT_EQ(sequence.lease().token_ids().Last(8),
            (Ids{4, 5, 6, 7, 8, 9, 1, 2}));
}

TEST_F(SequenceTest, ATurnThatReturnsWithoutItsStateFeedsItsLastTokens) {
  Sequence sequence = Make(TurnKind::kGenerate, {4, 5}, {6, 7});
  PlanInput(sequence);
  sequence.CommitToken(Sampled(8), absl::ZeroDuration());
  sequence.Return(/*rebuild_ids=*/3);
  EXPECT_EQ(PlanInput(sequence), "R6@2 R7@3 D8@4");
  EXPECT_EQ(Plan(sequence, 1), "D*@5");
  EXPECT_EQ(sequence.phase(), SequencePhase::kCollecting);
  sequence.CommitToken(Sampled(9), absl::ZeroDuration());
  sequence.Return(/*rebuild_ids=*/100);
  EXPECT_EQ(PlanInput(sequence), "R4@0 R5@1 R6@2 R7@3 R8@4 D9@5");
  EXPECT_EQ(sequence.phase(), SequencePhase::kCollecting);
}

TEST_F(SequenceTest, TokensHaveTheTimeSinceTheTurnOrTheTokenBefore) {
  QueuedTurn queued = Queued(TurnKind::kGenerate, {}, {1, 2});
  queued.submitted = absl::Seconds(10);
  Sequence sequence(std::move(queued), 0, absl::Seconds(11));
  PlanInput(sequence);
  Plan(sequence, 2);
  sequence.CollectRow(RowKind::kPrefill);
  const auto first = sequence.CommitToken(Sampled(7), absl::Seconds(14));
  EXPECT_TRUE(first.time.first);
  EXPECT_EQ(first.time.seconds, 4);
  EXPECT_EQ(first.time.prompt_tokens, 2);
  const auto second = sequence.CommitToken(Sampled(8), absl::Seconds(15));
  EXPECT_FALSE(second.time.first);
  EXPECT_EQ(second.time.seconds, 1);
  EXPECT_EQ(second.time.prompt_tokens, 0);
  sequence.CommitToken(Sampled(9), absl::Seconds(18));
  const TurnEnd end = sequence.EndAt(absl::Seconds(20));
  EXPECT_EQ(end.seconds, 10);
  EXPECT_EQ(end.prompt_tokens, 2);
  EXPECT_EQ(end.generated_tokens, 3);
  EXPECT_EQ(end.seconds_per_token, 2);
  EXPECT_FALSE(end.cancelled_seconds.has_value());
}

TEST_F(SequenceTest, AMeanTimePerTokenNeedsTwoTokens) {
  Sequence sequence = Make(TurnKind::kGenerate, {}, {1});
  PlanInput(sequence);
  EXPECT_EQ(sequence.EndAt(absl::Seconds(1)).generated_tokens, 0);
  EXPECT_FALSE(sequence.EndAt(absl::Seconds(1)).seconds_per_token.has_value());
  sequence.CommitToken(Sampled(7), absl::Seconds(1));
  EXPECT_EQ(sequence.EndAt(absl::Seconds(1)).generated_tokens, 1);
  EXPECT_FALSE(sequence.EndAt(absl::Seconds(1)).seconds_per_token.has_value());
}

TEST_F(SequenceTest, OnlyATurnThatGeneratesHasGeneratedTokens) {
  for (const TurnKind kind : {TurnKind::kAppend, TurnKind::kScore}) {
    const QueuedTurn queued = Queued(kind, {}, {1, 2, 3});
    const TurnEnd end =
        EndOfTurn(queued.turn, absl::Seconds(1), absl::Seconds(3));
    EXPECT_EQ(end.seconds, 2);
    EXPECT_EQ(end.prompt_tokens, 3);
    EXPECT_FALSE(end.generated_tokens.has_value());
  }
}

TEST_F(SequenceTest, ACancelledTurnsEndSaysHowLongThatTook) {
  QueuedTurn queued = Queued(TurnKind::kGenerate, {}, {1});
  queued.turn.cancel = std::make_shared<CancelToken>();
  const auto cancelled = [&](int now) {
    return EndOfTurn(queued.turn, absl::Seconds(1), absl::Seconds(now))
        .cancelled_seconds;
  };
  EXPECT_FALSE(cancelled(4).has_value());
  queued.turn.cancel->Cancel(CancelToken::Why::kDeadline, absl::Seconds(3));
  // Only the first cancellation counts.
  queued.turn.cancel->Cancel(CancelToken::Why::kCancelled, absl::Seconds(4));
  EXPECT_EQ(queued.turn.cancel->why(), CancelToken::Why::kDeadline);
  EXPECT_EQ(cancelled(5), 2);
  EXPECT_EQ(cancelled(2), 0);
}

TEST_F(SequenceTest, ModelsWithoutBeatPositionsHaveNoTicks) {
  Sequence sequence = Make(TurnKind::kGenerate, {1, 15, 20}, {1, 13, 20}, 9);
  std::vector<StepRow> rows;
  sequence.PlanRows(6, 0, rows);
  EXPECT_EQ(TicksOf(rows), (Ids{0, 0, 0, 0, 0, 0}));
}

// Whatever is fed of the session, all of its ids count.
TEST_F(SequenceTest, TicksCountEveryIdOfTheSession) {
  const Ids context = {0, 1, 15, 20, 1, 13, 21};
  for (const int64_t rebuild_ids : {0, 1, 3, 100}) {
    Sequence sequence(
        Queued(TurnKind::kGenerate, context, {1, 12, 30, 1, 40, 31}),
        rebuild_ids, absl::ZeroDuration(), kSequenceBeats);
    std::vector<StepRow> rows;
    sequence.PlanRows(sequence.prompt_rows_left(), 0, rows);
    const Ids all = {0, 0, 0, 5, 5, 5, 8, 8, 8, 10, 10, 10, 40};
    const Ids ticks = TicksOf(rows);
    EXPECT_EQ(ticks, Ids(all.end() - std::ssize(ticks), all.end()))
        << rebuild_ids;
  }
}

// What a row feeds does not move itself, so that a token on its way to the host
// need not be known.
TEST_F(SequenceTest, TicksOfSampledTokensAreKnownWhileTheyAreInFlight) {
  QueuedTurn queued = Queued(TurnKind::kGenerate, {}, {5, 1});
  queued.turn.stop.max_tokens = 9;
  Sequence sequence(std::move(queued), 0, absl::ZeroDuration(), kSequenceBeats);
  std::vector<StepRow> rows;
  sequence.PlanRows(2, 0, rows);
  for (const int32_t id : {16, 1, 30, 17, 1, 11}) {
    sequence.PlanRows(1, 0, rows);
    EXPECT_EQ(rows.back().token_id, kLastSampled);
    sequence.CommitToken(Sampled(id), absl::ZeroDuration());
  }
  sequence.PlanRows(1, 0, rows);
  EXPECT_EQ(rows.back().token_id, kLastSampled);
  EXPECT_EQ(TicksOf(rows), (Ids{0, 0, 0, 6, 6, 26, 26, 26, 27}));
}

TEST_F(SequenceTest, TicksOfGuessesCountTheGuessesBeforeThem) {
  QueuedTurn queued = Queued(TurnKind::kGenerate, {}, {5, 1});
  queued.turn.stop.max_tokens = 20;
  Sequence sequence(std::move(queued), 0, absl::ZeroDuration(), kSequenceBeats);
  std::vector<StepRow> rows;
  sequence.PlanRows(2, 0, rows);
  const Ids guesses = {13, 1, 15, 20};
  sequence.PlanGuesses(guesses, 0, rows);
  EXPECT_EQ(TicksOf(rows), (Ids{0, 0, 0, 3, 3, 8}));
  // The first was right, the second was not: what it said is forgotten.
  sequence.CollectRow(RowKind::kPrefill);
  sequence.CommitToken(Sampled(13), absl::ZeroDuration());
  sequence.CommitToken(Sampled(30), absl::ZeroDuration());
  for (int i = 0; i < 3; ++i) sequence.RejectRow();
  rows.clear();
  sequence.PlanRows(1, 0, rows);
  sequence.PlanGuesses(Ids{1, 14, 20}, 0, rows);
  EXPECT_EQ(rows.front().token_id, 30);
  EXPECT_EQ(TicksOf(rows), (Ids{3, 3, 3, 7}));
}

TEST_F(SequenceTest, ATurnThatComesBackCountsWhatItHasSampled) {
  QueuedTurn queued = Queued(TurnKind::kGenerate, {1, 14}, {5});
  queued.turn.stop.max_tokens = 9;
  Sequence sequence(std::move(queued), 0, absl::ZeroDuration(), kSequenceBeats);
  std::vector<StepRow> rows;
  sequence.PlanRows(sequence.prompt_rows_left(), 0, rows);
  sequence.CollectRow(RowKind::kPrefill);
  for (const int32_t id : {1, 13, 20}) {
    sequence.CommitToken(Sampled(id), absl::ZeroDuration());
    if (id != 20) sequence.PlanRows(1, 0, rows);
  }
  for (const int64_t rebuild_ids : {0, 4}) {
    sequence.Return(rebuild_ids);
    rows.clear();
    sequence.PlanRows(sequence.prompt_rows_left(), 0, rows);
    const Ids all = {0, 0, 4, 4, 4, 7};
    EXPECT_EQ(TicksOf(rows), Ids(all.end() - std::ssize(rows), all.end()));
  }
}

}  // namespace
}  // namespace txl
