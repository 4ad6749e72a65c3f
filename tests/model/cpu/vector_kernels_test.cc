// The row kernels against plain loops in double precision.

#include "model/cpu/vector_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace txl {
namespace {

std::vector<float> RandomFloats(int64_t size, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (float& value : values) value = normal(random);
  return values;
}

TEST(FinishRow, AppliesScaleBiasActivationAndResidualInThisOrder) {
  std::vector<float> scale(16, 2), bias(16, 1), residual(16, 10);
  std::vector<float> out = {-3, -2, -1, -0.5, 0, 0.5, 1, 2,
                            3,  4,  5,  6,    7, 8,   9, 10};
  const std::vector<float> in = out;
  FinishRow({out.data(), 16, scale.data(), bias.data(), residual.data(),
             RowActivation::kRelu});
  for (int i = 0; i < 16; ++i) {
    EXPECT_FLOAT_EQ(out[i], std::max(0.0f, in[i] * 2 + 1) + 10);
  }
}

TEST(FinishRow, GeluIsTheTanhForm) {
  std::vector<float> out(64);
  for (int i = 0; i < 64; ++i) out[i] = (i - 32) * 0.37f;
  out[0] = -1e4f;
  out[63] = 1e4f;
  const std::vector<float> in = out;
  RowEpilogue epilogue;
  epilogue.out = out.data();
  epilogue.columns = 64;
  epilogue.activation = RowActivation::kGeluTanh;
  FinishRow(epilogue);
  for (int i = 0; i < 64; ++i) {
    const double x = in[i];
    const double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    EXPECT_NEAR(out[i], 0.5 * x * (1 + std::tanh(inner)),
                1e-6 * std::max(1.0, std::abs(x)));
  }
}

TEST(FinishRow, ANumberThatIsNoneStaysSo) {
  std::vector<float> out(16, std::numeric_limits<float>::quiet_NaN());
  RowEpilogue epilogue;
  epilogue.out = out.data();
  epilogue.columns = 16;
  epilogue.activation = RowActivation::kRelu;
  FinishRow(epilogue);
  for (const float x : out) EXPECT_TRUE(std::isnan(x));
}

TEST(NormalizeRow, IsLayerNormAndClearsTheRest) {
  std::mt19937 random(4);
  for (const int64_t columns : {1, 5, 16, 31, 33, 64, 130}) {
    const int64_t padded = RoundUp(columns, kColumnGroup);
    std::vector<float> x = RandomFloats(padded, random);
    const std::vector<float> g = RandomFloats(padded, random);
    const std::vector<float> b = RandomFloats(padded, random);
    std::vector<float> out(padded, 7);
    NormalizeRow(x.data(), columns, g.data(), b.data(), 1e-5f, out.data());
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < columns; ++i) mean += x[i] / double(columns);
    for (int64_t i = 0; i < columns; ++i) {
      variance += (x[i] - mean) * (x[i] - mean) / double(columns);
    }
    for (int64_t i = 0; i < padded; ++i) {
      const double expected =
          i < columns ? (x[i] - mean) / std::sqrt(variance + 1e-5) * g[i] + b[i]
                      : 0;
      ASSERT_NEAR(out[i], expected, 2e-5) << columns << " columns, " << i;
    }
  }
}

TEST(SoftmaxWeights, WeighVisiblePositionsOnly) {
  std::mt19937 random(5);
  constexpr int64_t kCount = 192, kBegin = 13, kEnd = 150;
  std::vector<float> content = RandomFloats(kCount, random);
  std::vector<float> position = RandomFloats(kCount, random);
  // What is not visible may be anything.
  content[0] = std::numeric_limits<float>::infinity();
  content[kEnd] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> before = content;
  const SoftmaxPart part = SoftmaxWeights(content.data(), position.data(), 0.5f,
                                          {kBegin, kEnd, kCount});
  double largest = -1e30, expected_sum = 0;
  const auto score = [&](int64_t i) {
    return 0.5 * (double{before[i]} + position[i]);
  };
  for (int64_t i = kBegin; i < kEnd; ++i) {
    largest = std::max(largest, score(i));
  }
  for (int64_t i = 0; i < kCount; ++i) {
    const bool visible = i >= kBegin && i < kEnd;
    const double weight = visible ? std::exp(score(i) - largest) : 0;
    expected_sum += weight;
    ASSERT_NEAR(content[i], weight, 1e-6) << i;
  }
  EXPECT_NEAR(part.sum, expected_sum, 1e-4);
  EXPECT_NEAR(part.largest, largest, 1e-6);
}

TEST(SoftmaxWeights, AreMultipliedByTheScalesOfVisibleValues) {
  std::mt19937 random(6);
  const std::vector<float> scores = RandomFloats(128, random);
  const std::vector<float> zeros(128);
  std::vector<float> first(kPanel, 0.5f), second(kPanel, 3);
  second[60] = std::numeric_limits<float>::quiet_NaN();  // not visible
  const float* scales[] = {first.data(), second.data()};
  std::vector<float> plain = scores, scaled = scores;
  const SoftmaxPart expected =
      SoftmaxWeights(plain.data(), zeros.data(), 1, {5, 120, 128});
  const SoftmaxPart part =
      SoftmaxWeights(scaled.data(), zeros.data(), 1, {5, 120, 128}, scales);
  EXPECT_EQ(part.sum, expected.sum);
  EXPECT_EQ(part.largest, expected.largest);
  for (int64_t i = 0; i < 128; ++i) {
    EXPECT_EQ(scaled[i], plain[i] * (i < kPanel ? 0.5f : 3)) << i;
  }
}

// A row of a longer run of tiles has the same bits as of its own tiles alone.
TEST(SoftmaxWeights, TilesThatAreNotVisibleChangeNoBit) {
  std::mt19937 random(6);
  const std::vector<float> numbers = RandomFloats(128, random);
  const std::vector<float> zeros(256);
  std::vector<float> narrow = numbers;
  const SoftmaxPart own =
      SoftmaxWeights(narrow.data(), zeros.data(), 1, {5, 120, 128});
  std::vector<float> wide(256, 3.0f);
  std::copy(numbers.begin(), numbers.end(), wide.begin() + 64);
  const SoftmaxPart in_company =
      SoftmaxWeights(wide.data(), zeros.data(), 1, {69, 184, 256});
  EXPECT_EQ(own.sum, in_company.sum);
  EXPECT_EQ(own.largest, in_company.largest);
  EXPECT_TRUE(std::equal(narrow.begin(), narrow.end(), wide.begin() + 64));
}

TEST(BlendRows, WeighsBothRows) {
  std::mt19937 random(8);
  const std::vector<float> a = RandomFloats(48, random),
                           b = RandomFloats(48, random);
  std::vector<float> out = a;
  BlendRows({out.data(), 0.25f}, {b.data(), 3}, 48, out.data());
  for (int64_t i = 0; i < 48; ++i) {
    EXPECT_NEAR(out[i], 0.25 * a[i] + 3.0 * b[i], 1e-6);
  }
}

TEST(LogSumExp, IsThatOfTheFirstNumbers) {
  std::mt19937 random(7);
  for (const int64_t count : {1, 3, 16, 17, 100, 1000}) {
    std::vector<float> x = RandomFloats(RoundUp(count, kColumnGroup), random);
    for (int64_t i = 0; i < count; ++i) x[i] += 50;
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += std::exp(double{x[i]} - 50);
    EXPECT_NEAR(LogSumExp(x.data(), count), 50 + std::log(sum), 1e-5);
  }
}

TEST(SmallKernels, ShiftAndAdd) {
  std::vector<float> x(32), y(32, 1);
  for (int i = 0; i < 32; ++i) x[i] = static_cast<float>(2 * i);
  EXPECT_EQ(x[31], 62);
  ShiftRow(x.data(), 19, -1);
  EXPECT_EQ(x[18], 35);
  EXPECT_EQ(x[19], 38);
  AddRows(x.data(), y.data(), 32, y.data());
  EXPECT_EQ(y[19], 39);
}

}  // namespace
}  // namespace txl
