#include "tests/model/sampling/statistics.h"

#include <cmath>
#include <random>

#include "gtest/gtest.h"

namespace txl {
namespace {

TEST(Statistics, OneDegreeOfFreedomIsTheErrorFunction) {
  for (const double x : {0.01, 0.5, 1.0, 3.0, 10.0, 30.0}) {
    EXPECT_NEAR(ChiSquareSurvival(x, 1), std::erfc(std::sqrt(x / 2)), 1e-12);
  }
}

TEST(Statistics, TwoDegreesOfFreedomAreTheExponentialFunction) {
  for (const double x : {0.01, 1.0, 4.0, 20.0}) {
    EXPECT_NEAR(ChiSquareSurvival(x, 2), std::exp(-x / 2), 1e-12);
  }
}

// Q(m, x) = e^-x sum_{i<m} x^i / i! for whole m.
TEST(Statistics, EvenDegreesOfFreedomArePoissonSums) {
  for (const int degrees : {4, 10, 40, 200}) {
    for (const double x : {1.0, 20.0, 60.0, 250.0}) {
      double term = std::exp(-x / 2);
      double sum = 0;
      for (int i = 0; i < degrees / 2; ++i) {
        sum += term;
        term *= x / 2 / (i + 1);
      }
      EXPECT_NEAR(ChiSquareSurvival(x, degrees), sum, 1e-11);
    }
  }
}

TEST(Statistics, GoodnessOfFitTellsARightFromAWrongDistribution) {
  std::mt19937 random(1);
  std::discrete_distribution<int> distribution({0.5, 0.3, 0.2});
  std::vector<int64_t> counts(3);
  for (int i = 0; i < 100000; ++i) ++counts[distribution(random)];
  EXPECT_GT(GoodnessOfFit(counts, {0.5, 0.3, 0.2}), 0.001);
  EXPECT_LT(GoodnessOfFit(counts, {0.49, 0.3, 0.21}), 1e-6);
  EXPECT_EQ(GoodnessOfFit(counts, {0.5, 0.5, 0}), 0);
}

TEST(Statistics, GoodnessOfFitJoinsRareCells) {
  EXPECT_GT(GoodnessOfFit({1000, 2, 3, 0}, {0.995, 0.002, 0.002, 0.001}), 0.1);
  EXPECT_EQ(GoodnessOfFit({1000, 40}, {1 - 1e-6, 1e-6}), 0);
}

}  // namespace
}  // namespace txl
