// Sizes of what samples; what it computes, cuda_sampling_step_test.cc and
// sampling_promises_test.cc see.

#include "model/cuda/step/cuda_sampling.h"

#include <gtest/gtest.h>

#include "model/cuda/step/cuda_shape.h"

namespace txl::cuda {
namespace {

TEST(PassRowsTest, AreTheLargestBucketThatFits) {
  const std::vector<int> buckets = StepBuckets(200);
  EXPECT_EQ(buckets.back(), 224);
  EXPECT_EQ(PassRows(buckets, 10, 2240), 224);
  EXPECT_EQ(PassRows(buckets, 10, 2239), 192);
  EXPECT_EQ(PassRows(buckets, 10, 1e12), 224);
  EXPECT_EQ(PassRows(buckets, 10, 160), 16);
}

TEST(PassRowsTest, AreSixteenAtLeast) {
  EXPECT_EQ(PassRows(StepBuckets(200), 10, 0), 16);
  EXPECT_EQ(PassRows(StepBuckets(1), 10, 15), 16);
}

// Whatever is left for the last pass is a number of rows that products are
// prepared for.
TEST(PassRowsTest, LeaveABucketForTheLastPass) {
  const std::vector<int> buckets = StepBuckets(600);
  for (const int pass : buckets) {
    if (pass < 16) continue;
    for (const int wanted : buckets) {
      const int left = wanted % pass == 0 ? pass : wanted % pass;
      if (wanted <= pass) continue;
      EXPECT_EQ(buckets[BucketOf(buckets, left)], left)
          << wanted << " rows in passes of " << pass;
    }
  }
}

TEST(PassRowBytesTest, AreOfAllWordsPadded) {
  ModelConfig config;
  config.vocab_size = 1000;
  SamplingLimits limits = {10, 20, 30, 40};
  const int64_t besides = 100 * sizeof(AdjustedWord) + sizeof(SamplingRowState);
  EXPECT_EQ(PassRowBytes(config, limits), 1024 * 4 + besides);
  config.cutoffs = {100, 700};
  config.div_val = 2;
  // 100 words and 2 clusters, 600 words, 300 words.
  EXPECT_EQ(PassRowBytes(config, limits), (128 + 640 + 320) * 4 + besides);
}

TEST(ThreadsForSamplingTest, GoWithTheLargestBin) {
  EXPECT_EQ(ThreadsForSampling({{30}}), 64);
  EXPECT_EQ(ThreadsForSampling({{256}}), 64);
  EXPECT_EQ(ThreadsForSampling({{257}}), 128);
  EXPECT_EQ(ThreadsForSampling({{10, 1000, 1100}}), 256);
  EXPECT_EQ(ThreadsForSampling({{20000, 267735}}), kSamplingThreads);
}

}  // namespace
}  // namespace txl::cuda
