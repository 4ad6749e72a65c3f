#include "server/engine/sampling_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/server/engine/test_runners.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<SlotReadiness> kReady(3);

// Of a device that samples and derives nothing.
const RunnerInfo kDevice = [] {
  RunnerInfo info;
  info.most_top_logprobs = SamplingStep::kMostTopLogprobs;
  return info;
}();

std::vector<RowOutput> Outputs(const SamplingPlan& sampling) {
  std::vector<RowOutput> outputs;
  for (const SamplingRow& row : sampling.rows) outputs.push_back(row.output);
  return outputs;
}

SampledRow Sampled(int32_t token, float logprob) {
  SampledRow row;
  row.token = token;
  row.logprob = logprob;
  return row;
}

SampledRow Failed(SampledStatus status) {
  SampledRow row;
  row.status = status;
  return row;
}

TEST(SamplingPlanTest, EveryKindOfRowSaysWhatItWants) {
  StepRow score = Score(1, 4, 6, 7);
  score.top_logprobs = 5;
  StepRow prefill = Row(0, 8, RowKind::kPrefill, 1);
  prefill.top_logprobs = 3;  // means nothing there
  const StepPlan plan = {{prefill, Decode(0, 9, 2), score,
                          Row(2, 0, RowKind::kRebuild, kLastSampled)}};
  const SamplingPlan sampling = MakeSamplingPlan(plan, kDevice, kReady);
  EXPECT_THAT(Outputs(sampling),
              ElementsAre(RowOutput::kNone, RowOutput::kSample,
                          RowOutput::kScore, RowOutput::kNone));
  EXPECT_THAT(sampling.plan_rows, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(sampling.rows[0].position, 8);
  EXPECT_EQ(sampling.rows[0].token, 1);
  EXPECT_EQ(sampling.rows[0].top_logprobs, 0);
  EXPECT_EQ(sampling.rows[2].slot, 1);
  EXPECT_EQ(sampling.rows[2].target, 7);
  EXPECT_EQ(sampling.rows[2].top_logprobs, 5);
  EXPECT_EQ(sampling.rows[3].token, kLastSampledToken);
}

TEST(SamplingPlanTest, ARejectedGuessIsNoFailureAndHasNoResult) {
  const StepPlan plan = {{Decode(0, 9, 2), Decode(0, 10, 5), Decode(0, 11, 6)}};
  RunnerInfo info = kDevice;
  info.verifies_guesses = true;
  const SamplingPlan sampling = MakeSamplingPlan(plan, info, kReady);
  SampledRows sampled;
  sampled.rows = {Sampled(5, -1), Sampled(4, -2),
                  Failed(SampledStatus::kRejected)};
  sampled.evaluated = {1};
  const StepResult result =
      MakeStepResult(plan, sampling, std::move(sampled), {false, false, false});
  EXPECT_FALSE(result.rows[0].rejected);
  EXPECT_FALSE(result.rows[1].rejected);
  EXPECT_EQ(result.rows[1].token_id, 4);
  EXPECT_TRUE(result.rows[2].rejected);
  EXPECT_TRUE(result.rows[2].status.ok());
  EXPECT_EQ(result.rows[2].token_id, -1);
  // Nobody looked at its distribution.
  EXPECT_EQ(result.softmax_tails[0].computed, 1);
  EXPECT_EQ(result.softmax_tails[0].skipped, 1);
}

TEST(SamplingPlanTest, DerivingRowsRunWhereTheStepDerives) {
  const StepPlan plan = {{Row(1, 0, RowKind::kDerive, 0), Decode(0, 3, 1)}};
  const SamplingPlan sampling = MakeSamplingPlan(plan, kDevice, kReady);
  EXPECT_THAT(sampling.plan_rows, ElementsAre(1));
  EXPECT_TRUE(sampling.statuses[0].ok());
  RunnerInfo derives = kDevice;
  derives.derives = true;
  const SamplingPlan both = MakeSamplingPlan(plan, derives, kReady);
  EXPECT_THAT(both.plan_rows, ElementsAre(0, 1));
  EXPECT_EQ(both.rows[0].token, kNoToken);
  EXPECT_EQ(both.rows[0].output, RowOutput::kNone);
}

TEST(SamplingPlanTest, RowsOfASlotThatIsUnknownDoNotRun) {
  std::vector<SlotReadiness> slots(3);
  slots[1].rows = absl::InternalError("clearing a slot: lost");
  const SamplingPlan sampling = MakeSamplingPlan(
      {{Row(1, 2, RowKind::kPrefill, 1), Decode(1, 3, 1), Decode(0, 3, 1)}},
      kDevice, slots);
  EXPECT_THAT(sampling.plan_rows, ElementsAre(2));
  EXPECT_EQ(sampling.statuses[0], slots[1].rows);
  EXPECT_EQ(sampling.statuses[1], slots[1].rows);
  EXPECT_TRUE(sampling.statuses[2].ok());
}

TEST(SamplingPlanTest, ARowThatTheDeviceCannotReportStillRuns) {
  std::vector<SlotReadiness> slots(3);
  slots[0].sampling = absl::InvalidArgumentError("too many biases");
  StepRow many = Score(1, 3, 1, 2);
  many.top_logprobs = SamplingStep::kMostTopLogprobs + 1;
  const SamplingPlan sampling = MakeSamplingPlan(
      {{Decode(0, 3, 1), many, Score(2, 3, 1, 2)}}, kDevice, slots);
  EXPECT_THAT(Outputs(sampling), ElementsAre(RowOutput::kNone, RowOutput::kNone,
                                             RowOutput::kScore));
  EXPECT_EQ(sampling.statuses[0], slots[0].sampling);
  EXPECT_EQ(sampling.statuses[1].code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(sampling.statuses[1].message(), HasSubstr("top_logprobs 21"));
}

TEST(StepResultTest, ResultsComeBackToTheirRows) {
  const StepPlan plan = {{Row(1, 0, RowKind::kDerive, 0),
                          Row(0, 2, RowKind::kPrefill, 1), Decode(0, 3, 1),
                          Score(2, 3, 1, 8)}};
  SampledRows sampled;
  sampled.rows = {SampledRow(), Sampled(5, -1.5f), Sampled(8, -2.5f)};
  sampled.rows[2].top_logprobs = {{4, -0.5f}};
  sampled.device_seconds = 0.125;
  sampled.evaluated = {2, 0, 1};
  const StepResult result =
      MakeStepResult(plan, MakeSamplingPlan(plan, kDevice, kReady),
                     std::move(sampled), std::vector<bool>(4));
  ASSERT_EQ(result.rows.size(), 4);
  for (const RowResult& row : result.rows) EXPECT_TRUE(row.status.ok());
  EXPECT_EQ(result.rows[1].token_id, -1);
  EXPECT_EQ(result.rows[2].token_id, 5);
  EXPECT_EQ(result.rows[2].logprob, -1.5f);
  EXPECT_EQ(result.rows[3].token_id, 8);
  ASSERT_EQ(result.rows[3].top_logprobs.size(), 1);
  EXPECT_EQ(result.rows[3].top_logprobs[0].token_id, 4);
  EXPECT_EQ(result.device_seconds, 0.125);
  ASSERT_EQ(result.softmax_tails.size(), 3);
  // Of two rows with output.
  EXPECT_EQ(result.softmax_tails[0].computed, 2);
  EXPECT_EQ(result.softmax_tails[0].skipped, 0);
  EXPECT_EQ(result.softmax_tails[1].skipped, 2);
  EXPECT_EQ(result.softmax_tails[2].skipped, 1);
}

TEST(StepResultTest, WhatTheDeviceSaysOfARowIsItsStatus) {
  const StepPlan plan = {{Decode(0, 3, 1), Decode(1, 9, 1), Decode(2, 5, 1)}};
  SampledRows sampled;
  sampled.rows = {Failed(SampledStatus::kNotFinite),
                  Failed(SampledStatus::kNothingLeft), Sampled(5, -1)};
  const StepResult result =
      MakeStepResult(plan, MakeSamplingPlan(plan, kDevice, kReady),
                     std::move(sampled), std::vector<bool>(3));
  EXPECT_EQ(result.rows[0].status, NotFinite(3));
  EXPECT_EQ(result.rows[0].token_id, -1);
  EXPECT_EQ(result.rows[1].status, NothingToSample());
  EXPECT_TRUE(result.rows[2].status.ok());
}

TEST(StepResultTest, WithoutItsInputASlotsRowsFailAndNoOthers) {
  const StepPlan plan = {{Row(0, 3, RowKind::kPrefill, kLastSampled),
                          Decode(0, 4, 1),
                          Row(1, 3, RowKind::kPrefill, kLastSampled),
                          Decode(1, 4, 1), Decode(2, 4, kLastSampled)}};
  SampledRows sampled;
  // The device knew nothing of slot 0; slot 1 is the host's word against it.
  sampled.rows = {Failed(SampledStatus::kUnknownInput), Sampled(5, -1),
                  SampledRow(), Sampled(6, -1), Sampled(7, -1)};
  const StepResult result =
      MakeStepResult(plan, MakeSamplingPlan(plan, kDevice, kReady),
                     std::move(sampled), {false, false, true, false, false});
  for (const size_t row : {0, 1, 2, 3}) {
    EXPECT_EQ(result.rows[row].status, UnknownInput()) << row;
    EXPECT_EQ(result.rows[row].token_id, -1) << row;
  }
  EXPECT_TRUE(result.rows[4].status.ok());
}

TEST(StepResultTest, AStepOfWhichNothingRanHasOnlyStatuses) {
  std::vector<SlotReadiness> slots(3);
  slots[0].rows = absl::InternalError("lost");
  const StepPlan plan = {{Decode(0, 3, 1)}};
  const StepResult result = MakeStepResult(
      plan, MakeSamplingPlan(plan, kDevice, slots), SampledRows(), {false});
  ASSERT_EQ(result.rows.size(), 1);
  EXPECT_EQ(result.rows[0].status, slots[0].rows);
  EXPECT_THAT(result.softmax_tails, IsEmpty());
}

}  // namespace
}  // namespace txl
