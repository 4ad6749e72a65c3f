#include "server/scheduler/step_ledger.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/metrics/conservation.h"

namespace txl {
namespace {

RowCounts OneOfEach() {
  RowCounts rows;
  for (RowKind kind : {RowKind::kDecode, RowKind::kPrefill, RowKind::kScore,
                       RowKind::kRebuild}) {
    rows.Add(kind);
  }
  return rows;
}

TEST(StepLedger, KeptRowsAreFedAndTheirTokenDelivered) {
  Metrics metrics;
  StepLedger ledger(&metrics);
  ledger.KeptToken(OneOfEach(),
                   {.first = true, .seconds = 0.5, .prompt_tokens = 3});
  const Snapshot s = metrics.Get();
  EXPECT_EQ(s.rows_run, 4);
  EXPECT_EQ(s.rows_decode, 1);
  EXPECT_EQ(s.rows_prefill, 1);
  EXPECT_EQ(s.rows_score, 1);
  EXPECT_EQ(s.rows_rebuild, 1);
  EXPECT_EQ(s.tokens_fed, 4);
  EXPECT_EQ(s.tokens_sampled, 1);
  EXPECT_EQ(s.tokens_delivered, 1);
  EXPECT_EQ(BrokenLaws(s), std::vector<std::string>());
}

TEST(StepLedger, DiscardedRowsAndTokensAreBookedAsThat) {
  Metrics metrics;
  StepLedger ledger(&metrics);
  ledger.Discarded(OneOfEach(), 1);
  const Snapshot s = metrics.Get();
  EXPECT_EQ(s.rows_run, 4);
  EXPECT_EQ(s.rows_discarded, 4);
  EXPECT_EQ(s.tokens_fed, 0);
  EXPECT_EQ(s.tokens_sampled, 1);
  EXPECT_EQ(s.tokens_discarded, 1);
  EXPECT_EQ(BrokenLaws(s), std::vector<std::string>());
}

TEST(StepLedger, TheInputOfATurnThatDoesNotGenerateIsKeptWhole) {
  Metrics metrics;
  StepLedger ledger(&metrics);
  ledger.KeptInput(OneOfEach(), 5, 0);
  const Snapshot s = metrics.Get();
  EXPECT_EQ(s.tokens_fed, 4);
  EXPECT_EQ(s.tokens_prompt, 5);
  EXPECT_EQ(s.tokens_delivered, 0);
  EXPECT_EQ(BrokenLaws(s), std::vector<std::string>());
}

TEST(StepLedger, FirstTokensAndLaterOnesHaveTimesOfTheirOwn) {
  Metrics metrics;
  StepLedger ledger(&metrics);
  ledger.KeptToken({}, {.first = true, .seconds = 0.5, .prompt_tokens = 3});
  ledger.KeptToken({}, {.first = false, .seconds = 0.25});
  ledger.KeptToken({}, {.first = false, .seconds = 0.125});
  const Snapshot s = metrics.Get();
  EXPECT_EQ(s.distributions.first_token_seconds.sum(), 0.5);
  EXPECT_EQ(s.distributions.inter_token_seconds.count(), 2);
  EXPECT_EQ(s.distributions.inter_token_seconds.sum(), 0.375);
  EXPECT_EQ(s.tokens_prompt, 3);
  EXPECT_EQ(BrokenLaws(s), std::vector<std::string>());
}

constexpr StepShape kMixed = {
    .decode = true, .streams = true, .prompts = true, .turns = 3, .tokens = 20};
constexpr StepShape kDecode = {
    .decode = true, .streams = true, .prompts = false, .turns = 2, .tokens = 2};
constexpr StepShape kPrompt = {.decode = false,
                               .streams = false,
                               .prompts = true,
                               .turns = 1,
                               .tokens = 10};

TEST(StepLedger, AStepsKindIsThatOfItsTurns) {
  EXPECT_EQ(kMixed.kind(), StepKind::kMixed);
  EXPECT_EQ(kDecode.kind(), StepKind::kDecode);
  EXPECT_EQ(kPrompt.kind(), StepKind::kPrompt);
  // The last row of a prompt samples already.
  StepShape end_of_prompt = kPrompt;
  end_of_prompt.decode = true;
  EXPECT_EQ(end_of_prompt.kind(), StepKind::kPrompt);
}

StepResult Took(double seconds) {
  StepResult result;
  result.device_seconds = seconds;
  return result;
}

TEST(StepLedger, StepsAreCountedByWhatStoodInThem) {
  Metrics metrics;
  StepLedger ledger(&metrics);
  const absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  const StepResult quarter = Took(0.25);
  const StepResult half = Took(0.5);
  ledger.Step(kMixed, &quarter, now);
  ledger.Step(kDecode, &half, now);
  ledger.Step(kPrompt, &quarter, now + absl::Seconds(1));
  const Snapshot s = metrics.Get();
  EXPECT_EQ(s.steps, 3);
  EXPECT_EQ(s.steps_with_decode, 2);
  EXPECT_EQ(s.steps_with_prompt_and_decode, 1);
  EXPECT_EQ(s.step_seconds, 1.0);
  EXPECT_EQ(s.last_step, now + absl::Seconds(1));
  const Distributions& d = s.distributions;
  EXPECT_EQ(d.step_seconds[static_cast<int>(StepKind::kDecode)].sum(), 0.5);
  EXPECT_EQ(d.step_seconds[static_cast<int>(StepKind::kPrompt)].sum(), 0.25);
  EXPECT_EQ(d.step_seconds[static_cast<int>(StepKind::kMixed)].sum(), 0.25);
  EXPECT_EQ(d.step_batch_size.sum(), 3 + 2 + 1);
  EXPECT_EQ(d.step_tokens.sum(), 20 + 2 + 10);
  EXPECT_EQ(BrokenLaws(s), std::vector<std::string>());
}

TEST(StepLedger, ClustersOfTheSoftmaxAddUpOverTheSteps) {
  Metrics metrics;
  StepLedger ledger(&metrics);
  StepResult result = Took(0.25);
  ledger.Step(kPrompt, &result, absl::UnixEpoch());  // wanted nothing
  EXPECT_TRUE(metrics.Get().softmax_tails.empty());
  result.softmax_tails = {{.computed = 2, .skipped = 5},
                          {.computed = 0, .skipped = 7}};
  ledger.Step(kDecode, &result, absl::UnixEpoch());
  result.softmax_tails = {{.computed = 1, .skipped = 0},
                          {.computed = 1, .skipped = 0}};
  ledger.Step(kMixed, &result, absl::UnixEpoch());
  ledger.Step(kDecode, nullptr, absl::UnixEpoch());  // failed
  const Snapshot s = metrics.Get();
  ASSERT_EQ(s.softmax_tails.size(), 2u);
  EXPECT_EQ(s.softmax_tails[0].computed, 3);
  EXPECT_EQ(s.softmax_tails[0].skipped, 5);
  EXPECT_EQ(s.softmax_tails[1].computed, 1);
  EXPECT_EQ(s.softmax_tails[1].skipped, 7);
  EXPECT_EQ(BrokenLaws(s), std::vector<std::string>());
}

TEST(StepLedger, AFailedStepHasNoTime) {
  Metrics metrics;
  StepLedger ledger(&metrics);
  ledger.Step(kDecode, nullptr, absl::UnixEpoch());
  const Snapshot s = metrics.Get();
  EXPECT_EQ(s.steps, 1);
  EXPECT_EQ(s.steps_failed, 1);
  EXPECT_EQ(s.step_seconds, 0);
  for (const Histogram& kind : s.distributions.step_seconds) {
    EXPECT_EQ(kind.count(), 0);
  }
  EXPECT_EQ(BrokenLaws(s), std::vector<std::string>());
}

Metrics& WithActive(Metrics& metrics, int turns) {
  metrics.Update([turns](Snapshot& s) {
    s.turns_started = s.turns_active = turns;
    for (int i = 0; i < turns; ++i) s.distributions.queue_seconds.Observe(0);
  });
  return metrics;
}

TEST(StepLedger, ATurnEndsWithItsStatusReasonTimesAndLengths) {
  Metrics metrics;
  StepLedger ledger(&WithActive(metrics, 1));
  ledger.TurnEnded({.code = absl::StatusCode::kCancelled,
                    .reason = "CANCELLED",
                    .seconds = 2,
                    .prompt_tokens = 7,
                    .generated_tokens = 4,
                    .seconds_per_token = 0.5,
                    .cancelled_seconds = 0.25});
  const Snapshot s = metrics.Get();
  EXPECT_EQ(s.turns_active, 0);
  EXPECT_EQ(s.turns_finished.at("CANCELLED"), 1);
  EXPECT_EQ(s.turns_ended.at({"CANCELLED", "CANCELLED"}), 1);
  const Distributions& d = s.distributions;
  EXPECT_EQ(d.request_seconds.sum(), 2);
  EXPECT_EQ(d.prompt_tokens.sum(), 7);
  EXPECT_EQ(d.generated_tokens.sum(), 4);
  EXPECT_EQ(d.time_per_output_token_seconds.sum(), 0.5);
  EXPECT_EQ(d.cancel_to_release_seconds.sum(), 0.25);
  EXPECT_EQ(BrokenLaws(s), std::vector<std::string>());
}

TEST(StepLedger, WhatATurnDoesNotHaveIsNotObserved) {
  Metrics metrics;
  StepLedger ledger(&WithActive(metrics, 2));
  ledger.TurnEnded({.reason = "APPENDED", .seconds = 1, .prompt_tokens = 7});
  ledger.TurnEnded({.reason = "SCORED", .seconds = 1, .prompt_tokens = 7});
  const Snapshot s = metrics.Get();
  EXPECT_EQ(s.turns_finished.at("OK"), 2);
  EXPECT_EQ(s.turns_ended.at({"OK", "APPENDED"}), 1);
  EXPECT_EQ(s.turns_ended.at({"OK", "SCORED"}), 1);
  const Distributions& d = s.distributions;
  EXPECT_EQ(d.generated_tokens.count(), 0);
  EXPECT_EQ(d.time_per_output_token_seconds.count(), 0);
  EXPECT_EQ(d.cancel_to_release_seconds.count(), 0);
  EXPECT_EQ(BrokenLaws(s), std::vector<std::string>());
}

// Milliseconds of a step.
double Truth(int64_t streams, int64_t guesses) {
  return 0.4 + 0.2 * static_cast<double>(streams) +
         0.05 * static_cast<double>(guesses);
}

TEST(StepCostTest, LearnsFromStepsOfManyShapes) {
  StepCost cost;
  EXPECT_FALSE(cost.known());
  for (int i = 0; i < 200; ++i) {
    cost.Note(1 + i % 5, i % 7, Truth(1 + i % 5, i % 7));
  }
  EXPECT_TRUE(cost.known());
  EXPECT_NEAR(cost.OfGuess(), 0.05, 0.002);
  EXPECT_NEAR(cost.Seconds(1, 0), 0.6, 0.01);
  EXPECT_NEAR(cost.Seconds(32, 10), Truth(32, 10), 0.2);
}

TEST(StepCostTest, WhatStepsDoNotShowIsAssumed) {
  StepCost cost;
  for (int i = 0; i < 50; ++i) cost.Note(1, 0, 0.8);
  EXPECT_NEAR(cost.Seconds(1, 0), 0.8, 0.01);
  // Half a stream's row, which is half of the step.
  EXPECT_NEAR(cost.OfGuess(), 0.2, 0.01);
}

TEST(StepCostTest, ForgetsWhatWasSo) {
  StepCost cost;
  for (int i = 0; i < 300; ++i) cost.Note(1, i % 4, 5 * Truth(1, i % 4));
  for (int i = 0; i < 1000; ++i) cost.Note(1, i % 4, Truth(1, i % 4));
  EXPECT_NEAR(cost.OfGuess(), 0.05, 0.005);
  EXPECT_NEAR(cost.Seconds(1, 0), 0.6, 0.02);
}

TEST(StepCostTest, AStepThatStoodStillHardlyCounts) {
  StepCost cost;
  for (int i = 0; i < 100; ++i) cost.Note(1, i % 4, Truth(1, i % 4));
  cost.Note(1, 3, 1000);
  EXPECT_LT(cost.Seconds(1, 0), 0.7);
  EXPECT_LT(cost.OfGuess(), 0.1);
}

TEST(StepCostTest, NothingCostsLessThanNothing) {
  StepCost cost;
  for (int i = 0; i < 100; ++i) cost.Note(1, i % 4, 1 - 0.2 * (i % 4));
  EXPECT_EQ(cost.OfGuess(), 0);
  EXPECT_GT(cost.Seconds(1, 3), 0);
}

constexpr absl::Duration kTenMilliseconds = absl::Milliseconds(10);

// So many steps of `tokens` each, one after the other.
void RunSteps(ServiceRate& rate, absl::Duration& now, int steps, int64_t tokens,
              bool waiting = true) {
  for (int i = 0; i < steps; ++i) {
    now += kTenMilliseconds;
    rate.NoteStep(tokens, waiting, now);
  }
}

TEST(ServiceRate, IsUnknownUntilTurnsHaveWaitedForAWindow) {
  ServiceRate rate;
  absl::Duration now = absl::Seconds(9);
  RunSteps(rate, now, 1000, 5, /*waiting=*/false);
  EXPECT_FALSE(rate.tokens_per_second().has_value());
  RunSteps(rate, now, 100, 5);
  EXPECT_FALSE(rate.tokens_per_second().has_value());
  RunSteps(rate, now, 1, 5);
  EXPECT_DOUBLE_EQ(*rate.tokens_per_second(), 500);
}

TEST(ServiceRate, LeavesOutTheTimeInWhichNobodyWaited) {
  ServiceRate rate;
  absl::Duration now = absl::Seconds(9);
  RunSteps(rate, now, 60, 5);
  RunSteps(rate, now, 300, 1, /*waiting=*/false);
  now += absl::Hours(1);
  RunSteps(rate, now, 60, 5);
  EXPECT_NEAR(*rate.tokens_per_second(), 500, 5);
}

TEST(ServiceRate, FollowsAFasterServerAtOnceAndASlowerOneByHalf) {
  ServiceRate rate;
  absl::Duration now = absl::Seconds(9);
  RunSteps(rate, now, 101, 5);
  RunSteps(rate, now, 100, 10);
  EXPECT_DOUBLE_EQ(*rate.tokens_per_second(), 1000);
  RunSteps(rate, now, 100, 2);
  EXPECT_DOUBLE_EQ(*rate.tokens_per_second(), 600);
  RunSteps(rate, now, 100, 2);
  EXPECT_DOUBLE_EQ(*rate.tokens_per_second(), 400);
}

TEST(ServiceRate, KnowsWhatTurnsGenerate) {
  ServiceRate rate;
  EXPECT_EQ(rate.Expected(100), 0);
  for (int i = 0; i < 200; ++i) rate.NoteTurn(40);
  EXPECT_NEAR(rate.Expected(100), 40, 0.01);
  EXPECT_EQ(rate.Expected(7), 7);
}

TEST(IsUnreachable, HasAFactorOfTwo) {
  EXPECT_FALSE(IsUnreachable(200, 100, absl::Seconds(1)));
  EXPECT_TRUE(IsUnreachable(201, 100, absl::Seconds(1)));
  EXPECT_FALSE(IsUnreachable(0, 100, absl::ZeroDuration()));
  EXPECT_TRUE(IsUnreachable(1, 100, absl::ZeroDuration()));
}

// A server that is never twice as fast as it was measured: what is refused
// would not have begun in time.
TEST(IsUnreachable, WhatIsRefusedWouldHaveBeenTooLate) {
  int refused = 0;
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    ServiceRate rate;
    absl::Duration now = absl::Seconds(5);
    const auto usual = static_cast<int64_t>(10 + random() % 100);
    RunSteps(rate, now, 150, usual);
    double tokens = 0;
    const int ahead = static_cast<int>(random() % 50);
    for (int i = 0; i <= ahead; ++i) tokens += 1 + random() % 300;
    const absl::Duration left = absl::Milliseconds(random() % 4000);
    if (!IsUnreachable(tokens, *rate.tokens_per_second(), left)) continue;
    ++refused;
    absl::Duration began;
    while (tokens > 0) {
      began += kTenMilliseconds;
      tokens -= static_cast<double>(random() % (2 * usual + 1));
    }
    EXPECT_GT(began, left) << "seed " << seed;
  }
  EXPECT_GT(refused, 20);
}

}  // namespace

}  // namespace txl
