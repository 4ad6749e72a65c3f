#include "client/bench/plan/distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

namespace txl::bench {
namespace {

std::vector<double> Draws(const char* text, int count) {
  const auto distribution = Distribution::Parse(text);
  EXPECT_TRUE(distribution.ok()) << distribution.status();
  Random random({42});
  std::vector<double> draws;
  for (int i = 0; i < count; ++i) draws.push_back(distribution->Draw(random));
  std::sort(draws.begin(), draws.end());
  return draws;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

TEST(Distribution, OfANumberIsAlwaysIt) {
  EXPECT_EQ(Draws("32", 3), (std::vector<double>{32, 32, 32}));
  EXPECT_EQ(Draws("0.5", 1), (std::vector<double>{0.5}));
  EXPECT_TRUE(Distribution::Parse("32")->fixed());
}

TEST(Distribution, UniformCountsAreAllEquallyLikely) {
  const auto distribution = Distribution::Parse("uniform:3:7");
  ASSERT_TRUE(distribution.ok());
  Random random({1});
  std::map<int64_t, int> seen;
  for (int i = 0; i < 10'000; ++i) ++seen[distribution->DrawCount(random)];
  ASSERT_EQ(seen.size(), 5u);
  for (const auto& [value, count] : seen) {
    EXPECT_GE(value, 3);
    EXPECT_LE(value, 7);
    EXPECT_NEAR(count, 2000, 5 * 40);  // five deviations
  }
}

TEST(Distribution, UniformTimesFillTheirRange) {
  const std::vector<double> draws = Draws("uniform:1:3", 10'000);
  EXPECT_GE(draws.front(), 1);
  EXPECT_LE(draws.back(), 3);
  EXPECT_NEAR(Mean(draws), 2, 0.03);
  EXPECT_NEAR(draws[2500], 1.5, 0.05);
}

TEST(Distribution, ExponentialHasItsMeanAndMedian) {
  const std::vector<double> draws = Draws("exponential:2", 20'000);
  EXPECT_NEAR(Mean(draws), 2, 0.08);
  EXPECT_NEAR(draws[10'000], 2 * std::log(2), 0.08);
}

TEST(Distribution, LognormalHasItsMedianAndSpread) {
  const std::vector<double> draws = Draws("lognormal:100:0.5:100000", 20'000);
  EXPECT_NEAR(draws[10'000], 100, 3);
  // A standard normal exceeds 1 in 15.87 % of the draws.
  EXPECT_NEAR(draws[static_cast<size_t>(20'000 * (1 - 0.1587))],
              100 * std::exp(0.5), 5);
}

TEST(Distribution, DrawsAboveTheMaximumCountAsIt) {
  const std::vector<double> draws = Draws("lognormal:100:1:150", 1000);
  EXPECT_EQ(draws.back(), 150);
  EXPECT_GT(std::count(draws.begin(), draws.end(), 150.0), 200);
  EXPECT_EQ(Distribution::Parse("lognormal:100:1:150")->highest(), 150);
  EXPECT_EQ(Distribution::Parse("exponential:4:9")->highest(), 9);
  EXPECT_EQ(Distribution::Parse("exponential:4")->highest(),
            std::numeric_limits<double>::infinity());
}

TEST(Distribution, RefusesWhatItDoesNotKnow) {
  for (const char* text :
       {"", "x", "-1", "uniform", "uniform:1", "uniform:5:3", "uniform:a:b",
        "exponential", "exponential:1:2:3", "lognormal:1:2", "normal:1:2",
        "1:2", "inf", "nan", "uniform:1:inf"}) {
    const auto distribution = Distribution::Parse(text);
    EXPECT_EQ(distribution.status().code(), absl::StatusCode::kInvalidArgument)
        << text;
    EXPECT_NE(
        std::string(distribution.status().message()).find("uniform:LOW:HIGH"),
        std::string::npos);
  }
}

TEST(Distribution, KnowsItsEnds) {
  EXPECT_EQ(Distribution::Parse("uniform:2:9")->lowest(), 2);
  EXPECT_EQ(Distribution::Parse("uniform:2:9")->highest(), 9);
  EXPECT_TRUE(Distribution::Parse("5")->bounded_below());
  EXPECT_FALSE(Distribution::Parse("exponential:5")->bounded_below());
  EXPECT_EQ(Distribution::Parse("exponential:5")->lowest(), 0);
}

TEST(Distribution, KeepsItsText) {
  EXPECT_EQ(Distribution::Parse("uniform:1:2")->text(), "uniform:1:2");
  EXPECT_EQ(Distribution::Fixed(32).text(), "32");
}

constexpr int kDraws = 40'000;

template <typename Draw>
std::vector<double> Moments(Draw draw) {
  Random random({5});
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = draw(random);
    sum += value;
    squares += value * value;
  }
  const double mean = sum / kDraws;
  return {mean, squares / kDraws - mean * mean};
}

TEST(ARandomStream, IsAFunctionOfItsKey) {
  EXPECT_EQ(Random({1, 2}).Bits(), Random({1, 2}).Bits());
  const std::set<uint64_t> different = {
      Random({1, 2}).Bits(), Random({2, 1}).Bits(), Random({1}).Bits(),
      Random({1, 2, 0}).Bits(), Random({1, uint64_t{2} << 32}).Bits()};
  EXPECT_EQ(different.size(), 5u);
}

TEST(UniformDraws, FillTheUnitInterval) {
  const auto moments = Moments([](Random& random) {
    const double value = random.Uniform();
    EXPECT_GE(value, 0);
    EXPECT_LT(value, 1);
    return value;
  });
  EXPECT_NEAR(moments[0], 0.5, 5 * std::sqrt(1 / 12.0 / kDraws));
  EXPECT_NEAR(moments[1], 1 / 12.0, 0.002);
}

TEST(ExponentialDraws, HaveMeanAndVarianceOne) {
  const auto moments =
      Moments([](Random& random) { return random.Exponential(); });
  EXPECT_NEAR(moments[0], 1, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(moments[1], 1, 0.08);
}

TEST(NormalDraws, HaveMeanZeroVarianceOneAndTheRightTails) {
  const auto moments = Moments([](Random& random) { return random.Normal(); });
  EXPECT_NEAR(moments[0], 0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(moments[1], 1, 0.05);
  const auto beyond = Moments([](Random& random) {
    return std::abs(random.Normal()) > 1.959964 ? 1.0 : 0.0;
  });
  EXPECT_NEAR(beyond[0], 0.05, 5 * std::sqrt(0.05 * 0.95 / kDraws));
}

}  // namespace

}  // namespace txl::bench
