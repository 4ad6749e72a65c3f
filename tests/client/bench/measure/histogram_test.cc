#include "client/bench/measure/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace txl::bench {
namespace {

// The definition, on the values themselves.
Nanos NearestRank(std::vector<Nanos> values, double q) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<int64_t>(values.size());
  const auto rank = static_cast<int64_t>(std::ceil(q * static_cast<double>(n)));
  return values[std::clamp<int64_t>(rank, 1, n) - 1];
}

TEST(Buckets, FollowEachOtherWithoutGapOrOverlap) {
  for (int64_t i = 0; i < 10'000; ++i) {
    EXPECT_EQ(Histogram::LowerEnd(i) + Histogram::Width(i),
              Histogram::LowerEnd(i + 1));
    EXPECT_EQ(Histogram::IndexOf(Histogram::LowerEnd(i)), i);
    EXPECT_EQ(
        Histogram::IndexOf(Histogram::LowerEnd(i) + Histogram::Width(i) - 1),
        i);
  }
  // So far they reach: more than an hour.
  EXPECT_GT(Histogram::LowerEnd(10'000), 3600 * kNanosPerSecond);
}

TEST(Buckets, AreAsWideAsPromised) {
  EXPECT_EQ(Histogram::Width(Histogram::IndexOf(511)), 1);
  for (int64_t i = 512; i < 10'000; ++i) {
    EXPECT_LE(Histogram::Width(i) * 256, Histogram::LowerEnd(i));
  }
}

TEST(Percentiles, AreThoseOfTheValuesToTheWidthOfABucket) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> draw(15, 2);
  std::vector<Nanos> values;
  Histogram histogram;
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(static_cast<Nanos>(draw(random)));
    histogram.Add(values.back());
  }
  for (const double q : {0.0001, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
    const Nanos exact = NearestRank(values, q);
    EXPECT_GE(histogram.Percentile(q), exact) << q;
    EXPECT_LT(histogram.Percentile(q),
              exact + Histogram::Width(Histogram::IndexOf(exact)))
        << q;
  }
}

TEST(Percentiles, OfShortTimesAreExact) {
  Histogram histogram;
  for (Nanos value = 10; value <= 40; value += 10) histogram.Add(value);
  EXPECT_EQ(histogram.Percentile(0.25), 10);
  EXPECT_EQ(histogram.Percentile(0.26), 20);
  EXPECT_EQ(histogram.Percentile(0.5), 20);
  EXPECT_EQ(histogram.Percentile(0.75), 30);
  EXPECT_EQ(histogram.Percentile(0.99), 40);
  EXPECT_EQ(histogram.Percentile(1), 40);
}

TEST(Percentiles, NeverExceedTheHighestValue) {
  Histogram histogram;
  histogram.Add(1'000'000);
  EXPECT_EQ(histogram.Percentile(0.5), 1'000'000);
  EXPECT_EQ(histogram.Percentile(1), 1'000'000);
}

TEST(AHistogram, KnowsCountMeanMinimumAndMaximumExactly) {
  Histogram histogram;
  histogram.Add(1'000'003);
  histogram.Add(2'000'001, 3);
  EXPECT_EQ(histogram.count(), 4);
  EXPECT_EQ(histogram.min(), 1'000'003);
  EXPECT_EQ(histogram.max(), 2'000'001);
  EXPECT_DOUBLE_EQ(histogram.mean(), (1'000'003 + 3 * 2'000'001) / 4.0);
}

TEST(AHistogram, OfNothingIsZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0);
  EXPECT_EQ(histogram.mean(), 0);
  EXPECT_EQ(histogram.min(), 0);
  EXPECT_EQ(histogram.max(), 0);
  EXPECT_EQ(histogram.Percentile(0.99), 0);
}

TEST(AHistogram, TakesNegativeTimesAsZeroAndNoneAsNothing) {
  Histogram histogram;
  histogram.Add(-5);
  histogram.Add(100, 0);
  EXPECT_EQ(histogram.count(), 1);
  EXPECT_EQ(histogram.max(), 0);
}

TEST(Merging, LosesNothing) {
  Histogram all;
  Histogram even;
  Histogram odd;
  for (Nanos value = 1; value < 3'000'000; value += 977) {
    all.Add(value);
    (value % 2 == 0 ? even : odd).Add(value);
  }
  Histogram merged;
  merged.Merge(even);
  merged.Merge(odd);
  merged.Merge(Histogram());
  EXPECT_EQ(merged.buckets(), all.buckets());
  EXPECT_EQ(merged.count(), all.count());
  EXPECT_EQ(merged.min(), all.min());
  EXPECT_EQ(merged.max(), all.max());
  EXPECT_DOUBLE_EQ(merged.mean(), all.mean());
}

}  // namespace
}  // namespace txl::bench
