#include "client/bench/plan/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace txl::bench {
namespace {

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
