#include "tests/bench/cuda/kernel_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/cuda/kernels/attention.h"

namespace txl::cuda {
namespace {

using ::testing::HasSubstr;

KernelShape Small() {
  KernelShape shape;
  shape.heads = 16;
  shape.width = 128;
  shape.inner = 192;
  shape.window = 40;
  shape.distances = 40;
  shape.streamed_bytes = 20000;
  shape.passes = 2;
  return shape;
}

TEST(KernelTimesTest, AttentionIsChargedWithEveryStoredRowOnce) {
  Stream stream;
  const KernelTime time = TimeAttention(stream, Small(), 3);
  EXPECT_EQ(time.kernel, "attention");
  EXPECT_EQ(time.rows, 3);
  EXPECT_GT(time.seconds, 0);
  // Rows in bf16, a position score in float for each key and head, queries and
  // results in bf16.
  const double rows = 3 * 40 * 128 * 2;
  const double scores = 3 * 40 * 16 * 4;
  const double queries = 3 * 16 * 128 * 2;
  EXPECT_DOUBLE_EQ(time.bytes, rows + scores + 2 * queries);
  // A multiply-add for the score and one for the sum.
  EXPECT_DOUBLE_EQ(time.flops, 2.0 * 2 * 3 * 40 * 16 * 128);
}

TEST(KernelTimesTest, PromptsAreChargedWithWhatTheirRowsSeeOnce) {
  Stream stream;
  const KernelTime time = TimePrompts(stream, Small(), 2, 6);
  EXPECT_EQ(time.kernel, "prompts");
  EXPECT_EQ(time.rows, 12);
  EXPECT_GT(time.seconds, 0);
  const double rows = 2 * (40 + 5) * 128 * 2;
  const double scores = 12 * 40 * 16 * 4;
  const double queries = 12 * 16 * 128 * 2;
  EXPECT_DOUBLE_EQ(time.bytes, rows + scores + 2 * queries);
  EXPECT_DOUBLE_EQ(time.flops, 2.0 * 2 * 12 * 40 * 16 * 128);
}

TEST(KernelTimesTest, SplitsAreTheStepsOrThoseAskedFor) {
  Stream stream;
  KernelShape shape = Small();
  const int own = TimeAttention(stream, shape, 1).splits;
  EXPECT_EQ(own, AttentionSplits(1, 16, 40, CurrentDevice().processors));
  shape.splits = 2;
  EXPECT_EQ(TimeAttention(stream, shape, 1).splits, 2);
  shape.splits = 1000;  // there are no more tiles
  EXPECT_EQ(TimeAttention(stream, shape, 1).splits, AttentionTiles(40));
}

TEST(KernelTimesTest, AProductIsChargedWithItsMatrixOnce) {
  Stream stream;
  for (const int rows : {1, 5, 40}) {
    const auto times = TimeProducts(stream, Small(), rows);
    ASSERT_EQ(times.size(), 5u);
    EXPECT_EQ(times[3].kernel, "ff1");
    EXPECT_EQ(times[3].rows, rows);
    EXPECT_GT(times[3].seconds, 0);
    EXPECT_DOUBLE_EQ(times[3].bytes, 2.0 * (128 * 192 + rows * (128 + 192)));
    EXPECT_DOUBLE_EQ(times[3].flops, 2.0 * rows * 128 * 192);
  }
}

// The kernels of heads work on widths padded to 64.
TEST(KernelTimesTest, AProductOfHeadsIsChargedWithAllOfThem) {
  Stream stream;
  const auto times = TimeProducts(stream, Small(), 3);
  EXPECT_EQ(times[1].kernel, "keys");  // 128 of stored rows, 64 of distances
  EXPECT_DOUBLE_EQ(times[1].bytes,
                   16 * (2.0 * 64 * 192 + 3 * (2.0 * (64 + 128) + 4 * 64)));
  EXPECT_EQ(times[2].kernel, "values");
  EXPECT_DOUBLE_EQ(times[2].flops, 2.0 * 3 * 16 * 128 * 64);
}

TEST(KernelTimesTest, ACopyReadsAndWrites) {
  Stream stream;
  EXPECT_GT(CopyBandwidth(stream, 1 << 16, 2), 0);
}

TEST(KernelTimesTest, SharesAreOfTheCopyOfTheSameRun) {
  const std::vector<KernelTime> times = {{"attention", 32, 4, 0.002, 4e9, 8e9},
                                         {"product", 1, 1, 0.001, 1e9, 2e9}};
  const auto json = nlohmann::json::parse(ToJson(4e12, times));
  EXPECT_EQ(json["copy_bytes_per_second"], 4e12);
  ASSERT_EQ(json["kernels"].size(), 2u);
  EXPECT_EQ(json["kernels"][0]["rows"], 32);
  EXPECT_EQ(json["kernels"][0]["splits"], 4);
  EXPECT_DOUBLE_EQ(json["kernels"][0]["bytes_per_second"], 2e12);
  EXPECT_DOUBLE_EQ(json["kernels"][0]["share_of_copy"], 0.5);
  EXPECT_DOUBLE_EQ(json["kernels"][1]["share_of_copy"], 0.25);
  const std::string text = ToText(4e12, times);
  EXPECT_THAT(text, HasSubstr("copy: 4000.0 GB/s"));
  EXPECT_THAT(text, HasSubstr("50.0%"));
  EXPECT_THAT(text, HasSubstr("2000.0"));
}

}  // namespace
}  // namespace txl::cuda
