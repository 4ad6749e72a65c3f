#include "client/bench/latency.h"

#include <gtest/gtest.h>

#include <numeric>

namespace txl::bench {
namespace {

TEST(Percentile, IsTheSmallestSampleThatTheShareDoesNotExceed) {
  const std::vector<double> samples = {10, 20, 30, 40};
  EXPECT_EQ(Percentile(samples, 0.25), 10);
  EXPECT_EQ(Percentile(samples, 0.26), 20);
  EXPECT_EQ(Percentile(samples, 0.5), 20);
  EXPECT_EQ(Percentile(samples, 0.75), 30);
  EXPECT_EQ(Percentile(samples, 0.99), 40);
  EXPECT_EQ(Percentile(samples, 1), 40);
}

TEST(Percentile, OfOneSampleIsThatSample) {
  EXPECT_EQ(Percentile({7}, 0.01), 7);
  EXPECT_EQ(Percentile({7}, 0.99), 7);
}

TEST(Summarize, SortsAndTakesRanksOfAHundredSamples) {
  std::vector<double> samples(100);
  std::iota(samples.rbegin(), samples.rend(), 1);  // 100, 99, ..., 1
  const LatencySummary summary = Summarize(samples);
  EXPECT_EQ(summary.count, 100);
  EXPECT_DOUBLE_EQ(summary.mean, 50.5);
  EXPECT_EQ(summary.p50, 50);
  EXPECT_EQ(summary.p90, 90);
  EXPECT_EQ(summary.p99, 99);
  EXPECT_EQ(summary.max, 100);
}

TEST(Summarize, OfNothingIsZero) {
  const LatencySummary summary = Summarize({});
  EXPECT_EQ(summary.count, 0);
  EXPECT_EQ(summary.p99, 0);
}

}  // namespace
}  // namespace txl::bench
