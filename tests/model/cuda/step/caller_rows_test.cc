#include "model/cuda/step/caller_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace txl::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kMaxRows = 6;

// Two rows of slot 3, of which the second samples and wants two words; slot 1's
// sampled token and a score behind it; slot 5's sampled token.
std::vector<StepRow> SomeRows() {
  return {{3, 10, RowKind::kPrefill, 7},
          {3, 11, RowKind::kDecode, 8, 0, 2, nullptr, 6},
          {1, 4, RowKind::kPrefill, kLastSampled},
          {1, 5, RowKind::kScore, 9, 40, 0, nullptr, 9},
          {5, 0, RowKind::kDecode, kLastSampled}};
}

class CallerRowsTest : public ::testing::Test {
 protected:
  std::vector<int32_t> Column(InputColumn column, int buffer) {
    const int32_t* numbers = input_.column(column, buffer);
    return {numbers, numbers + kMaxRows};
  }

  StepInput input_{kMaxRows, kSamplingColumns, 2};
  StepResults results_{kMaxRows, 6, 1};
  const ResultArrays host_ = results_.host(0);
};

TEST_F(CallerRowsTest, OutputsAreCounted) {
  const CallerRows rows = CountRows(SomeRows());
  EXPECT_THAT(rows.rows, SizeIs(5));
  EXPECT_EQ(rows.wanted, 3);
  EXPECT_TRUE(rows.has_top);
  // Who has no output gets no words.
  const CallerRows none =
      CountRows(std::vector<StepRow>{{3, 10, RowKind::kPrefill, 7, 0, 2}});
  EXPECT_EQ(none.wanted, 0);
  EXPECT_FALSE(none.has_top);
}

TEST_F(CallerRowsTest, AreWrittenInOrderAndRowsThatDoNotExistBehindThem) {
  for (const int buffer : {0, 1}) {
    WriteRows(CountRows(SomeRows()), kMaxRows, buffer, input_);
    const int64_t* positions = input_.positions(buffer);
    EXPECT_THAT(std::vector<int64_t>(positions, positions + kMaxRows),
                ElementsAre(10, 11, 4, 5, 0, 0));
    EXPECT_THAT(Column(InputColumn::kSlot, buffer),
                ElementsAre(3, 3, 1, 1, 5, -1));
    EXPECT_THAT(Column(InputColumn::kToken, buffer),
                ElementsAre(7, 8, -1, 9, -1, 0));
    EXPECT_THAT(Column(InputColumn::kTicks, buffer),
                ElementsAre(0, 6, 0, 9, 0, 0));
    EXPECT_THAT(Column(InputColumn::kFollowsSampled, buffer),
                ElementsAre(0, 0, 1, 1, 1, 0));
    EXPECT_THAT(Column(InputColumn::kWanted, buffer),
                ElementsAre(1, 3, 4, -1, -1, -1));
    EXPECT_THAT(Column(InputColumn::kTarget, buffer),
                ElementsAre(-1, 40, -1, -1, -1, -1));
    EXPECT_THAT(Column(InputColumn::kTopCount, buffer),
                ElementsAre(2, 0, 0, 0, 0, 0));
  }
}

TEST_F(CallerRowsTest, NothingIsLeftOfAnEarlierStep) {
  WriteRows(CountRows(SomeRows()), kMaxRows, 0, input_);
  WriteRows({}, kMaxRows, 0, input_);
  EXPECT_THAT(Column(InputColumn::kSlot, 0), testing::Each(-1));
  EXPECT_THAT(Column(InputColumn::kWanted, 0), testing::Each(-1));
  EXPECT_THAT(Column(InputColumn::kTarget, 0), testing::Each(-1));
  EXPECT_THAT(Column(InputColumn::kTopCount, 0), testing::Each(0));
  EXPECT_THAT(Column(InputColumn::kToken, 0), testing::Each(0));
}

std::shared_ptr<const std::vector<int32_t>> SharedIds(
    std::vector<int32_t> ids) {
  return std::make_shared<const std::vector<int32_t>>(std::move(ids));
}

TEST_F(CallerRowsTest, NamedIdsAreWrittenByTheirRowsPlaces) {
  std::vector<StepRow> rows = SomeRows();
  rows[1].top_logprobs = 0;
  rows[0].logprob_ids = SharedIds({1});  // has no output
  EXPECT_FALSE(CountRows(rows).has_top);
  rows[3].logprob_ids = SharedIds({30, 0});
  rows[4].logprob_ids = SharedIds(std::vector<int32_t>(kMaxNamedIds, 50));
  EXPECT_TRUE(CountRows(rows).has_top);
  WriteRows(CountRows(rows), kMaxRows, 0, input_);
  const int32_t* named = input_.column(InputColumn::kNamed, 0);
  for (int i = 0; i < kMaxNamedIds; ++i, named += kMaxRows) {
    EXPECT_EQ(named[0], -1);
    EXPECT_EQ(named[1], i == 0 ? 30 : i == 1 ? 0 : -1);
    EXPECT_EQ(named[2], 50);
  }
}

TEST_F(CallerRowsTest, NamedWordsComeBackBehindTheBestOnes) {
  std::fill_n(host_.unknown(), kMaxRows, 0);
  StepRow row = {0, 7, RowKind::kScore, 1, 4, 1};
  row.logprob_ids = SharedIds({9, 8});
  host_.statuses()[0] = SampleStatus::kOk;
  const std::vector<int32_t> ids = {3, 9, 8, -1};
  std::copy(ids.begin(), ids.end(), host_.top_ids());
  for (int i = 0; i < 3; ++i) host_.top_logprobs()[i] = -1.0f - i;
  const RowResult result = ReadRows(CountRows({{row}}), host_)[0];
  ASSERT_THAT(result.top_logprobs, SizeIs(3));
  EXPECT_EQ(result.top_logprobs[0].token_id, 3);
  EXPECT_EQ(result.top_logprobs[2].token_id, 8);
  EXPECT_EQ(result.top_logprobs[2].logprob, -3.0f);
  for (const float bad : {std::nanf(""), HUGE_VALF}) {
    host_.top_logprobs()[2] = bad;
    const RowResult failed = ReadRows(CountRows({{row}}), host_)[0];
    EXPECT_EQ(failed.status, NotFinite(7));
    EXPECT_EQ(failed.token_id, -1);
    EXPECT_THAT(failed.top_logprobs, IsEmpty());
  }
}

TEST_F(CallerRowsTest, ResultsComeBackToTheirRows) {
  std::fill_n(host_.unknown(), kMaxRows, 0);
  host_.unknown()[2] = host_.unknown()[3] = 1;
  const SampleStatus statuses[] = {SampleStatus::kOk, SampleStatus::kUnused,
                                   SampleStatus::kNothingLeft};
  std::copy_n(statuses, 3, host_.statuses());
  host_.tokens()[0] = 12;
  host_.logprobs()[0] = -1.5f;
  host_.top_ids()[0] = 12;
  host_.top_logprobs()[0] = -1.5f;
  host_.top_ids()[1] = -1;  // there is only one word
  host_.tokens()[2] = -1;
  const std::vector<RowResult> sampled = ReadRows(CountRows(SomeRows()), host_);
  ASSERT_THAT(sampled, SizeIs(5));
  EXPECT_EQ(sampled[0].status, absl::OkStatus());
  EXPECT_EQ(sampled[0].token_id, -1);
  EXPECT_EQ(sampled[1].status, absl::OkStatus());
  EXPECT_EQ(sampled[1].token_id, 12);
  EXPECT_EQ(sampled[1].logprob, -1.5f);
  ASSERT_THAT(sampled[1].top_logprobs, SizeIs(1));
  EXPECT_EQ(sampled[1].top_logprobs[0].token_id, 12);
  EXPECT_EQ(sampled[2].status, UnknownInput());
  EXPECT_EQ(sampled[3].status, UnknownInput());
  EXPECT_EQ(sampled[3].token_id, -1);
  EXPECT_EQ(sampled[4].status, NothingToSample());
  EXPECT_EQ(sampled[4].token_id, -1);
  EXPECT_EQ(sampled[4].logprob, 0);
}

TEST_F(CallerRowsTest, NumbersThatAreNotFiniteAreTold) {
  std::fill_n(host_.unknown(), kMaxRows, 0);
  host_.statuses()[0] = SampleStatus::kNotFinite;
  host_.tokens()[0] = -1;
  host_.logprobs()[0] = std::nanf("");
  const std::vector<StepRow> rows = {{0, 7, RowKind::kScore, 1, 4, 3}};
  const RowResult row = ReadRows(CountRows(rows), host_)[0];
  EXPECT_EQ(row.status, NotFinite(7));
  EXPECT_EQ(row.token_id, -1);
  EXPECT_EQ(row.logprob, 0);
  EXPECT_THAT(row.top_logprobs, IsEmpty());
}

TEST_F(CallerRowsTest, EveryPassCounts) {
  for (int i = 0; i < 6; ++i) host_.list_ends()[i] = 1 << i;
  EXPECT_THAT(SumListEnds(host_, 3, 2), ElementsAre(1 + 4 + 16, 2 + 8 + 32));
  EXPECT_THAT(SumListEnds(host_, 0, 2), ElementsAre(0, 0));
  EXPECT_THAT(SumListEnds(host_, 1, 0), IsEmpty());
}

}  // namespace
}  // namespace txl::cuda
