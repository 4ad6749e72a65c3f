#include "client/fleet/zipf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace txl::fleet {
namespace {

// The statistic of Pearson's test, of draws against the definition.
double ChiSquared(int64_t n, double exponent) {
  constexpr int64_t kDraws = 200'000;
  bench::Random random({7, static_cast<uint64_t>(n)});
  const Zipf zipf(n, exponent);
  std::vector<int64_t> counts(static_cast<size_t>(n) + 1);
  for (int64_t i = 0; i < kDraws; ++i) ++counts.at(zipf.Draw(random));
  EXPECT_EQ(counts[0], 0);
  double weights = 0;
  for (int64_t k = 1; k <= n; ++k) weights += std::pow(k, -exponent);
  double sum = 0;
  for (int64_t k = 1; k <= n; ++k) {
    const double expected = kDraws * std::pow(k, -exponent) / weights;
    sum += std::pow(counts[k] - expected, 2) / expected;
  }
  return sum;
}

// With 49 degrees of freedom more than 90 comes once in 3,000 times.
TEST(Zipf, DrawsRanksByTheirWeights) {
  for (const double exponent : {0.0, 0.5, 0.8, 1.0, 1.3, 3.0}) {
    EXPECT_LT(ChiSquared(50, exponent), 90) << exponent;
  }
}

TEST(Zipf, DrawsTheOnlyOne) {
  bench::Random random({1});
  EXPECT_EQ(Zipf(1, 0.8).Draw(random), 1);
}

// Of a hundred million at exponent 0.8 the first 1 % weigh
// (0.01^0.2 - c) / (1 - c) of all, by the integral of x^-0.8.
TEST(Zipf, NeedsNoTableForVeryMany) {
  constexpr int64_t kSessions = 100'000'000;
  constexpr int kDraws = 100'000;
  bench::Random random({3});
  const Zipf zipf(kSessions, 0.8);
  int head = 0;
  for (int i = 0; i < kDraws; ++i) {
    const int64_t rank = zipf.Draw(random);
    ASSERT_LE(rank, kSessions);
    head += rank <= kSessions / 100;
  }
  const double all = std::pow(1e8, 0.2) - 1;
  const double first = std::pow(1e6, 0.2) - 1;
  EXPECT_NEAR(head / static_cast<double>(kDraws), first / all, 0.01);
}

}  // namespace
}  // namespace txl::fleet
