#include "client/bench/result/summary.h"

#include <gtest/gtest.h>

namespace txl::bench {
namespace {

TEST(Summarize, GivesSecondsByNearestRank) {
  Histogram histogram;
  for (int64_t ms = 1; ms <= 1000; ++ms) {
    histogram.Add(ms * kNanosPerSecond / 1000);
  }
  const LatencySummary summary = Summarize(histogram);
  EXPECT_EQ(summary.count, 1000);
  EXPECT_DOUBLE_EQ(summary.min, 0.001);
  EXPECT_DOUBLE_EQ(summary.max, 1);
  EXPECT_NEAR(summary.mean, 0.5005, 1e-9);
  const auto expect_rank = [](double value, double rank) {
    EXPECT_GE(value, rank);
    EXPECT_LE(value, rank * (1 + 1 / 256.0));
  };
  expect_rank(summary.p50, 0.5);
  expect_rank(summary.p90, 0.9);
  expect_rank(summary.p95, 0.95);
  expect_rank(summary.p99, 0.99);
  expect_rank(summary.p999, 0.999);
}

TEST(Summarize, GivesZerosForNoValues) {
  const LatencySummary summary = Summarize(Histogram());
  EXPECT_EQ(summary.count, 0);
  for (const double value :
       {summary.mean, summary.min, summary.p50, summary.p90, summary.p95,
        summary.p99, summary.p999, summary.max}) {
    EXPECT_EQ(value, 0);
  }
}

}  // namespace
}  // namespace txl::bench
