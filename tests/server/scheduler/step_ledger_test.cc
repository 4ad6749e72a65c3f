#include "server/scheduler/step_ledger.h"

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

}  // namespace
}  // namespace txl
