#include "server/engine/plan_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/engine/test_runners.h"

namespace txl {
namespace {

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
