#include "client/bench/result/summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

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

constexpr int kSampleDraws = 4000;

std::vector<double> Draw(const std::function<double(Resampling&)>& figure) {
  Resampling resampling(3);
  std::vector<double> draws;
  for (int i = 0; i < kSampleDraws; ++i) draws.push_back(figure(resampling));
  return draws;
}

double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double DeviationOf(const std::vector<double>& values) {
  const double mean = MeanOf(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

Counted Numbers(int n) {
  Counted values;
  for (int i = 1; i <= n; ++i) values.emplace_back(i, 1);
  return values;
}

// The bootstrap as it is defined: n values drawn anew, sorted.
std::vector<double> DrawnAnew(const Counted& values, double q) {
  std::mt19937_64 random(11);
  std::uniform_int_distribution<size_t> pick(0, values.size() - 1);
  std::vector<double> draws;
  for (int i = 0; i < kSampleDraws; ++i) {
    std::vector<double> sample;
    for (size_t j = 0; j < values.size(); ++j) {
      sample.push_back(values[pick(random)].first);
    }
    std::sort(sample.begin(), sample.end());
    const auto n = static_cast<double>(sample.size());
    draws.push_back(sample[static_cast<size_t>(std::ceil(q * n)) - 1]);
  }
  return draws;
}

TEST(PercentilesOfResamples, AreDistributedAsThoseOfValuesDrawnAnew) {
  const Counted values = Numbers(60);
  for (const double q : {0.5, 0.9, 0.99}) {
    const std::vector<double> expected = DrawnAnew(values, q);
    const std::vector<double> draws = Draw([&](Resampling& resampling) {
      return resampling.Percentile(values, q);
    });
    EXPECT_NEAR(MeanOf(draws), MeanOf(expected), 0.6) << q;
    EXPECT_NEAR(DeviationOf(draws), DeviationOf(expected), 0.35) << q;
    EXPECT_NEAR(MiddleOf(draws).low, MiddleOf(expected).low, 2) << q;
    EXPECT_NEAR(MiddleOf(draws).high, MiddleOf(expected).high, 2) << q;
  }
}

TEST(PercentilesOfResamples, OfOneValueAreIt) {
  EXPECT_EQ(Resampling(1).Percentile({{7, 1}}, 0.99), 7);
  EXPECT_EQ(Resampling(1).Percentile({{7, 1000}}, 0.01), 7);
}

TEST(MeansOfResamples, VaryByTheDeviationOverTheRoot) {
  const Counted values = {{0, 300}, {10, 100}};
  const std::vector<double> draws =
      Draw([&](Resampling& resampling) { return resampling.Mean(values); });
  EXPECT_NEAR(MeanOf(draws), 2.5, 0.03);
  // 10 sqrt(1/4 3/4) / sqrt(400)
  EXPECT_NEAR(DeviationOf(draws), 0.2165, 0.015);
}

TEST(BlockMeans, AreMeansOfBlocksDrawnAnew) {
  const std::vector<double> blocks = {1, 2, 3, 6};
  const std::vector<double> draws = Draw(
      [&](Resampling& resampling) { return resampling.BlockMean(blocks); });
  EXPECT_NEAR(MeanOf(draws), 3, 0.1);
  EXPECT_GE(*std::min_element(draws.begin(), draws.end()), 1);
  EXPECT_LE(*std::max_element(draws.begin(), draws.end()), 6);
  // The blocks' deviation is sqrt(3.5).
  EXPECT_NEAR(DeviationOf(draws), std::sqrt(3.5 / 4), 0.05);
}

TEST(SharesOfResamples, AreBinomial) {
  const std::vector<double> draws =
      Draw([](Resampling& resampling) { return resampling.Share(80, 100); });
  EXPECT_NEAR(MeanOf(draws), 0.8, 0.005);
  EXPECT_NEAR(DeviationOf(draws), 0.04, 0.003);
  EXPECT_EQ(Resampling(1).Share(0, 0), 0);
  EXPECT_EQ(Resampling(1).Share(100, 100), 1);
}

TEST(MiddleOf, LeavesTwoAndAHalfPercentOnEachSide) {
  std::vector<double> draws;
  for (int i = 1000; i >= 1; --i) draws.push_back(i);
  EXPECT_EQ(MiddleOf(draws).low, 25);
  EXPECT_EQ(MiddleOf(draws).high, 975);
  EXPECT_EQ(MiddleOf({5}).low, 5);
}

TEST(Draws, AreTheSameForTheSameSeed) {
  const Counted values = Numbers(100);
  const auto draw = [&](uint64_t seed) {
    Resampling resampling(seed);
    std::vector<double> draws;
    for (int i = 0; i < 20; ++i) {
      draws.push_back(resampling.Percentile(values, 0.5));
    }
    return draws;
  };
  EXPECT_EQ(draw(5), draw(5));
  EXPECT_NE(draw(5), draw(6));
}

}  // namespace

}  // namespace txl::bench
