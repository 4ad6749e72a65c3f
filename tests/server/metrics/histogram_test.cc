#include "server/metrics/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "server/metrics/distributions.h"

namespace txl {
namespace {

constexpr std::array kBounds = {1., 2., 5.};

TEST(HistogramTest, StartsEmpty) {
  const Histogram histogram(kBounds);
  EXPECT_EQ(histogram.count(), 0);
  EXPECT_EQ(histogram.sum(), 0);
  EXPECT_EQ(histogram.AtMost(2), 0);
}

TEST(HistogramTest, AValueOnABoundIsWithinIt) {
  Histogram histogram(kBounds);
  for (const double value : {0.5, 1., 1.5, 2., 5.}) histogram.Observe(value);
  EXPECT_EQ(histogram.AtMost(0), 2);
  EXPECT_EQ(histogram.AtMost(1), 4);
  EXPECT_EQ(histogram.AtMost(2), 5);
  EXPECT_EQ(histogram.sum(), 10);
}

TEST(HistogramTest, ASumIsAsIfOneHadSeenAll) {
  Histogram one(kBounds);
  Histogram other(kBounds);
  one.Observe(0.5);
  for (const double value : {1.5, 4., 6.}) other.Observe(value);
  one.Add(other);
  EXPECT_EQ(one.AtMost(0), 1);
  EXPECT_EQ(one.AtMost(1), 2);
  EXPECT_EQ(one.AtMost(2), 3);
  EXPECT_EQ(one.count(), 4);
  EXPECT_EQ(one.sum(), 12);
  EXPECT_EQ(other.count(), 3);
}

TEST(HistogramTest, ValuesOverTheLastBoundAreInTheCountOnly) {
  Histogram histogram(kBounds);
  histogram.Observe(5.1);
  histogram.Observe(std::numeric_limits<double>::infinity());
  EXPECT_EQ(histogram.AtMost(2), 0);
  EXPECT_EQ(histogram.count(), 2);
}

TEST(HistogramTest, ACopyGoesOnAlone) {
  Histogram histogram(kBounds);
  histogram.Observe(1);
  Histogram copy = histogram;
  copy.Observe(1);
  EXPECT_EQ(histogram.count(), 1);
  EXPECT_EQ(copy.count(), 2);
}

TEST(HistogramTest, EveryBoundCountsWhatSortingCounts) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> spread(-4, 3);
  std::vector<double> values(1000);
  Histogram histogram(kFirstTokenBounds);
  for (double& value : values) {
    value = spread(random);
    histogram.Observe(value);
  }
  for (size_t i = 0; i < kFirstTokenBounds.size(); ++i) {
    EXPECT_EQ(histogram.AtMost(i),
              std::count_if(values.begin(), values.end(), [&](double value) {
                return value <= kFirstTokenBounds[i];
              }));
  }
}

std::vector<Histogram> All(const Distributions& d) {
  return {d.queue_seconds,
          d.request_seconds,
          d.prompt_tokens,
          d.generated_tokens,
          d.first_token_seconds,
          d.inter_token_seconds,
          d.stall_seconds,
          d.time_per_output_token_seconds,
          d.step_seconds[0],
          d.step_seconds[1],
          d.step_seconds[2],
          d.step_batch_size,
          d.step_tokens,
          d.restore_seconds,
          d.idle_before_evict_seconds,
          d.cancel_to_release_seconds};
}

TEST(DistributionsTest, HaveAscendingBoundsThatFit) {
  for (const Histogram& histogram : All(Distributions())) {
    ASSERT_LE(histogram.bounds().size(), Histogram::kMaxBounds);
    EXPECT_TRUE(std::is_sorted(histogram.bounds().begin(),
                               histogram.bounds().end(),
                               std::less_equal<double>()));
    EXPECT_GT(histogram.bounds().front(), 0);
  }
}

TEST(DistributionsTest, CanTellTheUsualObjectivesForTheFirstToken) {
  for (const double seconds : {0.2, 0.5, 1., 2.}) {
    EXPECT_NE(
        std::find(kFirstTokenBounds.begin(), kFirstTokenBounds.end(), seconds),
        kFirstTokenBounds.end());
  }
}

}  // namespace
}  // namespace txl
