#include "server/engine/sampling_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
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

std::vector<RowKind> Kinds(const SamplingPlan& sampling) {
  std::vector<RowKind> kinds;
  for (const StepRow& row : sampling.rows) kinds.push_back(row.kind);
  return kinds;
}

RowResult Sampled(int32_t token, float logprob) {
  RowResult row;
  row.token_id = token;
  row.logprob = logprob;
  return row;
}

RowResult Failed(absl::Status status) {
  RowResult row;
  row.status = std::move(status);
  return row;
}

TEST(SamplingPlanTest, RowsThatMayRunRunAsThePlanHasThem) {
  StepRow score = Score(1, 4, 6, 7);
  score.top_logprobs = 5;
  const StepPlan plan = {{Row(0, 8, RowKind::kPrefill, 1), Decode(0, 9, 2),
                          score, Row(2, 0, RowKind::kRebuild, kLastSampled)}};
  const SamplingPlan sampling = MakeSamplingPlan(plan, kDevice, kReady);
  EXPECT_THAT(Kinds(sampling), ElementsAre(RowKind::kPrefill, RowKind::kDecode,
                                           RowKind::kScore, RowKind::kRebuild));
  EXPECT_THAT(sampling.plan_rows, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(sampling.rows[0].position, 8);
  EXPECT_EQ(sampling.rows[0].token_id, 1);
  EXPECT_EQ(sampling.rows[2].slot, 1);
  EXPECT_EQ(sampling.rows[2].score_target, 7);
  EXPECT_EQ(sampling.rows[2].top_logprobs, 5);
  EXPECT_EQ(sampling.rows[3].token_id, kLastSampled);
}

TEST(SamplingPlanTest, ARejectedGuessIsNoFailureAndHasNoResult) {
  const StepPlan plan = {{Decode(0, 9, 2), Decode(0, 10, 5), Decode(0, 11, 6)}};
  RunnerInfo info = kDevice;
  info.verifies_guesses = true;
  const SamplingPlan sampling = MakeSamplingPlan(plan, info, kReady);
  SampledRows sampled;
  sampled.rows = {Sampled(5, -1), Sampled(4, -2), RowResult()};
  sampled.rows[2].rejected = true;
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
  EXPECT_EQ(both.rows[0].kind, RowKind::kDerive);
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
  EXPECT_THAT(Kinds(sampling), ElementsAre(RowKind::kPrefill, RowKind::kPrefill,
                                           RowKind::kScore));
  EXPECT_EQ(sampling.rows[1].top_logprobs, 0);
  EXPECT_EQ(sampling.statuses[0], slots[0].sampling);
  EXPECT_EQ(sampling.statuses[1].code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(sampling.statuses[1].message(), HasSubstr("top_logprobs 21"));
  many.top_logprobs = 0;
  many.logprob_ids = std::make_shared<const std::vector<int32_t>>(
      SamplingStep::kMostTopLogprobs + 1, 3);
  const SamplingPlan named = MakeSamplingPlan({{many}}, kDevice, slots);
  EXPECT_EQ(named.rows[0].logprob_ids, nullptr);
  EXPECT_THAT(named.statuses[0].message(), HasSubstr("top_logprobs 21"));
}

TEST(StepResultTest, ResultsComeBackToTheirRows) {
  const StepPlan plan = {{Row(1, 0, RowKind::kDerive, 0),
                          Row(0, 2, RowKind::kPrefill, 1), Decode(0, 3, 1),
                          Score(2, 3, 1, 8)}};
  SampledRows sampled;
  sampled.rows = {RowResult(), Sampled(5, -1.5f), Sampled(8, -2.5f)};
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
  sampled.rows = {Failed(NotFinite(3)), Failed(NothingToSample()),
                  Sampled(5, -1)};
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
  sampled.rows = {Failed(UnknownInput()), Sampled(5, -1), RowResult(),
                  Sampled(6, -1), Sampled(7, -1)};
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

using ::testing::HasSubstr;

RunnerInfo SmallInfo() {
  RunnerInfo info;
  info.slots = 3;
  info.spare_rows = 4;
  info.max_rows = 6;
  info.vocab_size = 10;
  return info;
}

std::string CheckMessage(std::vector<StepRow> rows) {
  const absl::Status status = CheckPlan({std::move(rows)}, SmallInfo());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(CheckPlanTest, AcceptsWhatSubmitAllows) {
  StepPlan plan;
  plan.rows = {Row(2, 0, RowKind::kPrefill, 9), Row(2, 1, RowKind::kDecode, 0),
               Row(0, 70, RowKind::kDecode, kLastSampled)};
  EXPECT_TRUE(CheckPlan(plan, SmallInfo()).ok());
}

TEST(CheckPlanTest, GuessesStandBehindARowThatDecodesWhereTheyAreVerified) {
  RunnerInfo info = SmallInfo();
  const auto decode = RowKind::kDecode;
  const std::vector<StepRow> rows = {Row(1, 4, decode, kLastSampled),
                                     Row(1, 5, decode, 3),
                                     Row(1, 6, decode, 2)};
  EXPECT_THAT(CheckMessage(rows), HasSubstr("decodes before its last row"));
  info.verifies_guesses = true;
  EXPECT_TRUE(CheckPlan({rows}, info).ok());
  // Behind them nothing but guesses, each of a token that is known.
  for (const StepRow& row :
       {Row(1, 5, RowKind::kPrefill, 3), Row(1, 5, decode, kLastSampled)}) {
    EXPECT_FALSE(CheckPlan({{rows[0], row}}, info).ok());
  }
}

TEST(CheckPlanTest, NamesTheRowAndWhatIsWrongWithIt) {
  const auto decode = RowKind::kDecode;
  EXPECT_THAT(CheckMessage({}), HasSubstr("plan of 0 rows"));
  EXPECT_THAT(CheckMessage(std::vector<StepRow>(7, Row(0, 0, decode, 1))),
              HasSubstr("plan of 7 rows"));
  EXPECT_THAT(CheckMessage({Row(3, 0, decode, 1)}), HasSubstr("slot 3"));
  EXPECT_THAT(CheckMessage({Row(-1, 0, decode, 1)}), HasSubstr("slot -1"));
  EXPECT_THAT(CheckMessage({Row(0, -2, decode, 1)}), HasSubstr("position -2"));
  EXPECT_THAT(CheckMessage({Row(1, 0, decode, 1), Row(0, 0, decode, 10)}),
              HasSubstr("plan row 1: token id 10"));
  EXPECT_THAT(CheckMessage({Row(0, 0, decode, -2)}), HasSubstr("token id -2"));
  StepRow score = Row(0, 0, RowKind::kScore, 1);
  score.score_target = 10;
  EXPECT_THAT(CheckMessage({score}), HasSubstr("score target 10"));
  StepRow top = Row(0, 0, decode, 1);
  top.top_logprobs = 11;
  EXPECT_THAT(CheckMessage({top}), HasSubstr("top_logprobs 11"));
  StepRow named = Row(0, 0, decode, 1);
  named.logprob_ids =
      std::make_shared<const std::vector<int32_t>>(std::vector<int32_t>{9, 10});
  EXPECT_THAT(CheckMessage({named}), HasSubstr("reported id 10"));
}

TEST(CheckPlanTest, RowsOfASlotStandTogetherAndAscend) {
  const auto prefill = RowKind::kPrefill;
  EXPECT_THAT(CheckMessage({Row(0, 4, prefill, 1), Row(0, 6, prefill, 1)}),
              HasSubstr("not consecutive"));
  EXPECT_THAT(CheckMessage({Row(0, 4, prefill, 1), Row(1, 0, prefill, 1),
                            Row(0, 5, prefill, 1)}),
              HasSubstr("not consecutive"));
  std::vector<StepRow> five;
  for (int i = 0; i < 5; ++i) five.push_back(Row(0, i, prefill, 1));
  EXPECT_THAT(CheckMessage(five), HasSubstr("more than 4 rows"));
}

TEST(CheckPlanTest, ASlotFeedsItsLastTokenFirstAndDecodesLast) {
  const auto prefill = RowKind::kPrefill;
  EXPECT_THAT(
      CheckMessage({Row(0, 4, prefill, 1), Row(0, 5, prefill, kLastSampled)}),
      HasSubstr("plan row 1: the last sampled token is input of a slot's"));
  EXPECT_THAT(
      CheckMessage({Row(0, 4, RowKind::kDecode, 1), Row(0, 5, prefill, 2)}),
      HasSubstr("plan row 1: slot 0 decodes before its last row"));
  EXPECT_TRUE(CheckPlan({{Row(0, 4, prefill, kLastSampled),
                          Row(0, 5, RowKind::kDecode, 2)}},
                        SmallInfo())
                  .ok());
}

TEST(CheckPlanTest, DerivingRowsNeedNeitherPositionNorTokenAndStandAlone) {
  const StepRow derive = Row(1, -1, RowKind::kDerive, -7);
  // More than a slot's spare rows.
  EXPECT_TRUE(CheckPlan({std::vector<StepRow>(5, derive)}, SmallInfo()).ok());
  EXPECT_THAT(CheckMessage({derive, Row(1, 0, RowKind::kDecode, 1)}),
              HasSubstr("plan row 1: rows of slot 1 are not consecutive"));
  EXPECT_THAT(CheckMessage({Row(3, 0, RowKind::kDerive, 0)}),
              HasSubstr("slot 3"));
}

}  // namespace

}  // namespace txl
