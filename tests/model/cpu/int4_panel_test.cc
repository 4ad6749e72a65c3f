// Weights of 4 bits: what they lose, how they lie, and that every instruction
// set of the machine unpacks the same numbers and multiplies to the same bits.

#include "model/cpu/int4_panel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "model/cpu/packed_matrix.h"
#include "model/cpu/vector_target.h"

namespace txl {
namespace {

std::vector<float> Normal(int64_t size, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<uint8_t> EmptyPanel(int64_t inputs) {
  return std::vector<uint8_t>(Int4PanelBytes(inputs));
}

// An output of its own panel, there and back.
std::vector<float> Restored(const std::vector<float>& x) {
  const int64_t inputs = static_cast<int64_t>(x.size());
  std::vector<uint8_t> panel = EmptyPanel(inputs);
  const float scale = PackInt4Output(x.data(), inputs, 5, panel.data());
  std::vector<float> row(inputs);
  UnpackInt4Output(panel.data(), 5, inputs, row.data());
  for (float& number : row) number *= scale;
  return row;
}

TEST(Int4PanelBytes, AreFourBitsAWeightAndAByteAGroup) {
  EXPECT_EQ(Int4PanelBytes(32), 64 * 16 + 64);
  EXPECT_EQ(Int4PanelBytes(1), Int4PanelBytes(32));
  EXPECT_EQ(Int4PanelBytes(33), 2 * Int4PanelBytes(32));
  EXPECT_EQ(8.0 * Int4PanelBytes(1024) / (1024 * 64), 4.25);
}

// Half a step, which is a fifteenth of the group's width, rounded up to the
// next fifteenth of the widest group's.
TEST(PackInt4Output, ErrorsAreHalfAStepOfTheirGroup) {
  std::mt19937 random(1);
  for (const int64_t inputs : {1, 5, 31, 32, 33, 64, 100, 320}) {
    for (int times = 0; times < 20; ++times) {
      std::vector<float> x = Normal(inputs, random);
      x[random() % inputs] *= 1 + static_cast<float>(random() % 8);
      const std::vector<float> row = Restored(x);
      std::vector<float> widths;
      float largest = 0;
      for (int64_t k = 0; k < inputs; k += 32) {
        float low = 0, high = 0;
        for (int64_t i = k; i < std::min(inputs, k + 32); ++i) {
          low = std::min(low, x[i]);
          high = std::max(high, x[i]);
        }
        widths.push_back(high - low);
        largest = std::max({largest, high, -low});
      }
      const float scale = std::max(
          *std::max_element(widths.begin(), widths.end()) / 225, largest / 120);
      for (int64_t k = 0; k < inputs; ++k) {
        const float step = std::min(widths[k / 32] / 15 + scale, 15 * scale);
        ASSERT_NEAR(row[k], x[k], 0.501f * step) << inputs << ", " << k;
      }
    }
  }
}

TEST(PackInt4Output, NumbersOfOneSignUseAllCodes) {
  std::vector<float> x(32);
  for (int i = 0; i < 32; ++i) x[i] = static_cast<float>(i / 2);
  EXPECT_EQ(Restored(x).front(), 0);
  for (int i = 0; i < 32; ++i) EXPECT_NEAR(Restored(x)[i], x[i], 0.05f) << i;
  for (float& number : x) number = -number;
  for (int i = 0; i < 32; ++i) EXPECT_NEAR(Restored(x)[i], x[i], 0.05f) << i;
}

TEST(PackInt4Output, ZerosAndWhatIsNearlyZeroAreZeros) {
  for (const float tiny : {0.0f, 1e-38f, 1e-41f}) {
    for (const float number : Restored(std::vector<float>(40, tiny))) {
      EXPECT_EQ(number, 0);
    }
  }
  // A group of zeros beside others.
  std::vector<float> x(64, 1.0f);
  std::fill(x.begin(), x.begin() + 32, 0.0f);
  EXPECT_EQ(Restored(x)[31], 0);
  EXPECT_NEAR(Restored(x)[32], 1, 0.05f);
}

TEST(PackInt4Output, WhatIsNotFiniteHasNoScale) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    std::vector<float> x(70, 0.5f);
    x[66] = bad;
    std::vector<uint8_t> panel = EmptyPanel(70);
    EXPECT_TRUE(std::isnan(PackInt4Output(x.data(), 70, 0, panel.data())));
  }
}

class Int4Targets : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(UseVectorTarget(GetParam())); }
  void TearDown() override { UseVectorTarget(VectorTargets().front()); }
};

INSTANTIATE_TEST_SUITE_P(Machine, Int4Targets,
                         testing::ValuesIn(VectorTargets()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

// Every step, zero and code, by the description of the format alone.
TEST_P(Int4Targets, NumbersAreCodesLessZeroTimesStep) {
  std::mt19937 random(2);
  constexpr int64_t kGroups = 3, kInputs = kGroups * 32;
  std::vector<uint8_t> panel = EmptyPanel(kInputs);
  for (uint8_t& byte : panel) byte = static_cast<uint8_t>(random());
  std::vector<int8_t> quads(kInputs * kPanel), plain(kInputs * kPanel);
  UnpackInt4Quads(panel.data(), kGroups, quads.data());
  UnpackInt4Inputs(panel.data(), kGroups, plain.data());
  for (int64_t n = 0; n < kPanel; ++n) {
    std::vector<float> row(kInputs);
    UnpackInt4Output(panel.data(), n, kInputs, row.data());
    for (int64_t k = 0; k < kInputs; ++k) {
      const uint8_t* group = panel.data() + k / 32 * (64 + 1024);
      const uint8_t two = group[64 + (k % 32 / 8 * 64 + n) * 4 + k % 4];
      const int code = k % 8 < 4 ? two & 15 : two >> 4;
      const int number = (code - (group[n] >> 4)) * (group[n] & 15);
      ASSERT_EQ(row[k], number);
      // What does not fit 8 bits is never packed.
      const int8_t byte = static_cast<int8_t>(number);
      ASSERT_EQ(quads[(k / 4 * kPanel + n) * 4 + k % 4], byte);
      ASSERT_EQ(plain[k * kPanel + n], byte);
    }
  }
}

// Exact sums times scales, in pieces of the inputs, beside any number of rows:
// the same bits everywhere.
TEST_P(Int4Targets, ProductsWithIntegersAreExactSumsTimesScales) {
  std::mt19937 random(3);
  ThreadPool pool(2);
  for (const int64_t inputs : {20, 300, 512, 1100}) {
    constexpr int64_t kOutputs = 70;
    const std::vector<float> weights = Normal(kOutputs * inputs, random);
    const PackedMatrix packed(weights.data(), kOutputs, inputs,
                              NumberFormat::kInt4, Products::kInteger);
    for (const int64_t rows : {1, 2, 5, 13}) {
      const std::vector<float> x = Normal(rows * inputs, random);
      std::vector<float> out(rows * 128, 99);
      IntegerRows integers;
      ApplyLinear({&packed},
                  {rows, {x.data(), inputs}, {}, out.data(), 128, &integers},
                  pool);
      std::vector<int8_t> numbers(RoundUp(inputs, kColumnGroup));
      std::vector<float> row(inputs);
      for (int64_t r = 0; r < rows; ++r) {
        const float scale =
            QuantiseRow(x.data() + r * inputs, inputs, numbers.data()).scale;
        for (int64_t n = 0; n < kOutputs; ++n) {
          UnpackInt4Output(packed.panel(n / 64), n % 64, inputs, row.data());
          int64_t sum = 0;
          for (int64_t k = 0; k < inputs; ++k) {
            sum += int64_t{numbers[k]} * static_cast<int64_t>(row[k]);
          }
          ASSERT_EQ(out[r * 128 + n],
                    static_cast<float>(sum) * (scale * packed.scales()[n]))
              << rows << " rows, " << inputs << " inputs: " << r << ", " << n;
        }
      }
    }
  }
}

// Rows of floats: one chain of sums, whatever is computed beside it.
TEST_P(Int4Targets, ProductsWithFloatsHaveTheSameBitsInAnyCompany) {
  std::mt19937 random(4);
  ThreadPool pool(2);
  constexpr int64_t kOutputs = 70, kInputs = 1100, kRows = 13;
  const std::vector<float> weights = Normal(kOutputs * kInputs, random);
  const PackedMatrix packed(weights.data(), kOutputs, kInputs,
                            NumberFormat::kInt4);
  const std::vector<float> x = Normal(kRows * kInputs, random);
  std::vector<float> together(kRows * 128), alone(128), row(kInputs);
  ApplyLinear({&packed}, {kRows, {x.data(), kInputs}, {}, together.data(), 128},
              pool);
  for (int64_t r = 0; r < kRows; ++r) {
    ApplyLinear({&packed},
                {1, {x.data() + r * kInputs, kInputs}, {}, alone.data(), 128},
                pool);
    for (int64_t n = 0; n < kOutputs; ++n) {
      ASSERT_EQ(together[r * 128 + n], alone[n]) << r << ", " << n;
      packed.CopyRow(n, row.data());
      double sum = 0;
      for (int64_t k = 0; k < kInputs; ++k) {
        sum += double{x[r * kInputs + k]} * row[k];
      }
      ASSERT_NEAR(alone[n], sum, 3e-4);
    }
  }
}

}  // namespace
}  // namespace txl
