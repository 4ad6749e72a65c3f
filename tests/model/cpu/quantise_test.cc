// Rounding to whole numbers on every instruction set of the machine.

#include "model/cpu/quantise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "model/cpu/vector_target.h"

namespace txl {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<float> RandomScales(int64_t size, std::mt19937& random) {
  std::uniform_real_distribution<float> scale(0.001f, 3);
  std::vector<float> values(size);
  for (float& value : values) value = scale(random);
  return values;
}

class QuantiseTargets : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(UseVectorTarget(GetParam())); }
  void TearDown() override { UseVectorTarget(VectorTargets().front()); }
};

INSTANTIATE_TEST_SUITE_P(Machine, QuantiseTargets,
                         testing::ValuesIn(VectorTargets()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

TEST_P(QuantiseTargets, RowsAreRoundedToNearestOfTheirLargest) {
  // The largest has 127, so that the others are whole numbers themselves.
  const std::vector<float> x = {-127, 3.4f, 0.5f, 1.5f, -2.5f, 126.6f, 0};
  std::vector<int8_t> numbers(16, 99);
  const IntegerRow row = QuantiseRow(x.data(), 7, numbers.data());
  EXPECT_EQ(row.scale, 1);
  EXPECT_EQ(numbers, (std::vector<int8_t>{-127, 3, 0, 2, -2, 127, 0, 0, 0, 0, 0,
                                          0, 0, 0, 0, 0}));
  EXPECT_EQ(row.sum, 3);
}

TEST_P(QuantiseTargets, RestoredRowsAreWithinHalfAUnit) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  for (const int64_t count : {1, 15, 16, 17, 100}) {
    std::vector<float> x(count), back(count);
    for (float& value : x) value = normal(random);
    std::vector<int8_t> numbers(RoundUp(count, kColumnGroup));
    const IntegerRow row = QuantiseRow(x.data(), count, numbers.data());
    RestoreRow(numbers.data(), row.scale, count, back.data());
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_NEAR(back[i], x[i], 0.501f * row.scale) << count;
    }
  }
}

TEST_P(QuantiseTargets, RowsOfZerosAndOfNoNumbersAreZeros) {
  std::vector<float> x(20, 0.0f);
  std::vector<int8_t> numbers(32, 99);
  const IntegerRow zeros = QuantiseRow(x.data(), 20, numbers.data());
  EXPECT_EQ(zeros.scale, 0);
  EXPECT_EQ(numbers, std::vector<int8_t>(32, 0));
  // A bad number is seen in the product, not lost in it.
  for (const float bad : {kNaN, std::numeric_limits<float>::infinity()}) {
    x[17] = bad;
    const IntegerRow row = QuantiseRow(x.data(), 20, numbers.data());
    EXPECT_TRUE(std::isnan(row.scale));
    EXPECT_EQ(row.sum, 0);
  }
}

// Weights of two panels.
struct Weights {
  explicit Weights(std::mt19937& random)
      : numbers(RandomScales(2 * kPanel, random)) {}

  float Quantise() {
    return QuantiseWeights(
        {numbers.data(), 2 * kPanel, high.data(), low.data()});
  }

  std::vector<float> numbers;
  std::vector<uint8_t> high = std::vector<uint8_t>(2 * kPanel, 99);
  std::vector<uint8_t> low = std::vector<uint8_t>(2 * kPanel, 99);
};

TEST_P(QuantiseTargets, WeightsHaveSixteenBits) {
  std::mt19937 random(5);
  Weights weights(random);
  const float scale = weights.Quantise();
  int largest = 0;
  for (int64_t j = 0; j < 2 * kPanel; ++j) {
    const int number = 256 * weights.high[j] + weights.low[j];
    largest = std::max(largest, number);
    EXPECT_NEAR(static_cast<float>(number) * scale, weights.numbers[j],
                0.51f * scale);
  }
  EXPECT_EQ(largest, 65535);
}

TEST_P(QuantiseTargets, ABadWeightIsSeenInTheScale) {
  for (const float bad : {kNaN, std::numeric_limits<float>::infinity()}) {
    std::mt19937 random(6);
    Weights weights(random);
    weights.numbers[70] = bad;
    EXPECT_TRUE(std::isnan(weights.Quantise()));
    EXPECT_EQ(weights.high, std::vector<uint8_t>(2 * kPanel, 0));
    EXPECT_EQ(weights.low, std::vector<uint8_t>(2 * kPanel, 0));
    weights.numbers.assign(2 * kPanel, 0);
    EXPECT_EQ(weights.Quantise(), 0);
  }
}

TEST(QuantiseEveryTarget, HasTheSameBits) {
  std::mt19937 random(8);
  std::normal_distribution<float> normal;
  std::vector<float> x(100);
  for (float& value : x) value = normal(random);
  Weights weights(random);
  std::vector<std::vector<int8_t>> numbers;
  std::vector<std::vector<float>> floats;
  for (const std::string& target : VectorTargets()) {
    ASSERT_TRUE(UseVectorTarget(target));
    numbers.emplace_back(112);
    const IntegerRow row = QuantiseRow(x.data(), 100, numbers.back().data());
    floats.push_back({row.scale, weights.Quantise()});
    for (int64_t j = 0; j < 2 * kPanel; ++j) {
      floats.back().push_back(
          static_cast<float>(256 * weights.high[j] + weights.low[j]));
    }
    floats.back().resize(300);
    RestoreRow(numbers.back().data(), row.scale, 100,
               floats.back().data() + 200);
    EXPECT_EQ(numbers.back(), numbers.front()) << target;
    EXPECT_EQ(floats.back(), floats.front()) << target;
  }
  UseVectorTarget(VectorTargets().front());
}

}  // namespace
}  // namespace txl
