#include "model/cpu/packed_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace txl {
namespace {

// Small whole numbers: every sum is exact.
std::vector<float> Integers(int64_t size, std::mt19937& random) {
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(int(random() % 7) - 3);
  return values;
}

TEST(PackedMatrix, GivesItsRowsBack) {
  std::mt19937 random(1);
  const std::vector<float> weights = Integers(70 * 9, random);
  const PackedMatrix packed(weights.data(), 70, 9);
  EXPECT_EQ(packed.outputs(), 70);
  EXPECT_EQ(packed.inputs(), 9);
  EXPECT_EQ(packed.panels(), 2);
  EXPECT_EQ(packed.bytes(), 128 * 9 * 4);
  std::vector<float> row(9);
  for (const int64_t n : {0, 63, 64, 69}) {
    packed.CopyRow(n, row.data());
    EXPECT_TRUE(std::equal(row.begin(), row.end(), weights.begin() + n * 9));
  }
}

TEST(PackedMatrix, OutputsBehindTheLastAreZeros) {
  const std::vector<float> weights(3 * 5, 1.0f);
  const PackedMatrix packed(weights.data(), 3, 5);
  for (int64_t k = 0; k < 5; ++k) {
    for (int64_t lane = 0; lane < kPanel; ++lane) {
      float weight;
      WidenRow(packed.panel(0) + (k * kPanel + lane) * 4, NumberFormat::kF32, 1,
               &weight);
      EXPECT_EQ(weight, lane < 3 ? 1 : 0);
    }
  }
}

// Largest error of a stored weight, relative to its row's largest.
TEST(PackedMatrix, NarrowFormatsRoundToNearest) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  constexpr int64_t kOut = 70, kIn = 33;
  std::vector<float> weights(kOut * kIn);
  for (float& weight : weights) weight = normal(random);
  for (const auto& [format, error] :
       std::vector<std::pair<NumberFormat, float>>{
           {NumberFormat::kF32, 0.0f},
           {NumberFormat::kF16, 1.0f / 2048},
           {NumberFormat::kBF16, 1.0f / 256},
           {NumberFormat::kInt8, 0.51f / 127},
           {NumberFormat::kInt4, 0.51f * (2.0f / 15 + 1.0f / 112)}}) {
    const PackedMatrix packed(weights.data(), kOut, kIn, format);
    std::vector<float> row(kIn);
    for (int64_t n = 0; n < kOut; ++n) {
      packed.CopyRow(n, row.data());
      float largest = 0;
      for (int64_t k = 0; k < kIn; ++k) {
        largest = std::max(largest, std::abs(weights[n * kIn + k]));
      }
      for (int64_t k = 0; k < kIn; ++k) {
        ASSERT_NEAR(row[k], weights[n * kIn + k], error * largest);
      }
    }
  }
}

TEST(ApplyLinear, ComputesWithTheWeightsAsTheyAreStored) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  constexpr int64_t kOut = 100, kIn = 50;
  std::vector<float> weights(kOut * kIn), x(3 * kIn), row(kIn);
  for (float& weight : weights) weight = normal(random);
  for (float& value : x) value = normal(random);
  ThreadPool pool(1);
  for (const NumberFormat format : {NumberFormat::kF16, NumberFormat::kBF16,
                                    NumberFormat::kInt8, NumberFormat::kInt4}) {
    const PackedMatrix packed(weights.data(), kOut, kIn, format);
    std::vector<float> out(3 * 128);
    ApplyLinear({&packed}, {3, {x.data(), kIn}, {}, out.data(), 128}, pool);
    for (int64_t n = 0; n < kOut; ++n) {
      packed.CopyRow(n, row.data());
      for (int64_t r = 0; r < 3; ++r) {
        double sum = 0;
        for (int64_t k = 0; k < kIn; ++k) {
          sum += double{x[r * kIn + k]} * row[k];
        }
        ASSERT_NEAR(out[r * 128 + n], sum, 2e-4);
      }
    }
  }
}

// Rows and weights as whole numbers times scales, by way of doubles.
TEST(ApplyLinear, IntegerProductsAreThoseOfRoundedRowsAndWeights) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  constexpr int64_t kOut = 100, kIn = 50;
  std::vector<float> weights(kOut * kIn), x(9 * kIn), row(kIn), rounded(kIn);
  for (float& weight : weights) weight = normal(random);
  for (float& value : x) value = normal(random);
  const PackedMatrix packed(weights.data(), kOut, kIn, NumberFormat::kInt8,
                            Products::kInteger);
  const std::vector<float> bias(128, 0.5f);
  std::vector<int8_t> numbers(64);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    IntegerRows integers;
    std::vector<float> out(9 * 128);
    ApplyLinear({&packed, bias.data()},
                {9, {x.data(), kIn}, {}, out.data(), 128, &integers}, pool);
    for (int64_t r = 0; r < 9; ++r) {
      const float scale =
          QuantiseRow(x.data() + r * kIn, kIn, numbers.data()).scale;
      RestoreRow(numbers.data(), scale, kIn, rounded.data());
      for (int64_t n = 0; n < kOut; ++n) {
        packed.CopyRow(n, row.data());
        double sum = 0.5;
        for (int64_t k = 0; k < kIn; ++k) sum += double{rounded[k]} * row[k];
        ASSERT_NEAR(out[r * 128 + n], sum, 1e-4) << r << ", " << n;
      }
    }
  }
}

TEST(PackedMatrix, KeepsTheSameNumbersForEitherProducts) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  constexpr int64_t kOut = 70, kIn = 33;
  std::vector<float> weights(kOut * kIn), of_floats(kIn), of_integers(kIn);
  for (float& weight : weights) weight = normal(random);
  for (const NumberFormat format : {NumberFormat::kInt8, NumberFormat::kInt4}) {
    const PackedMatrix floats(weights.data(), kOut, kIn, format);
    const PackedMatrix integers(weights.data(), kOut, kIn, format,
                                Products::kInteger);
    EXPECT_EQ(integers.depth(), 36);
    for (const PackedMatrix* packed : {&floats, &integers}) {
      EXPECT_EQ(packed->bytes(),
                PackedMatrix::BytesOf(kOut, kIn, format, packed->products()));
    }
    for (int64_t n = 0; n < kOut; ++n) {
      floats.CopyRow(n, of_floats.data());
      integers.CopyRow(n, of_integers.data());
      ASSERT_EQ(of_floats, of_integers) << n;
    }
  }
}

TEST(IntegerRows, EveryNthRowIsARowOfItsOwn) {
  std::vector<float> x(6 * 20);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) - 6;
  ThreadPool pool(2);
  IntegerRows rows;
  rows.Quantise({x.data(), 20}, 6, 20, pool);
  const IntegerFactor second = rows.Every(3, 1);
  std::vector<int8_t> expected(32);
  for (int64_t i = 0; i < 2; ++i) {
    const IntegerRow row =
        QuantiseRow(x.data() + (1 + 3 * i) * 20, 20, expected.data());
    EXPECT_EQ(second.rows[i * second.rows_stride].scale, row.scale);
    EXPECT_EQ(second.rows[i * second.rows_stride].sum, row.sum);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                           second.data + i * second.stride));
  }
}

TEST(PanelOfClaim, EveryPanelIsSomeClaims) {
  for (const int64_t threads : {1, 2, 3, 16}) {
    for (const int64_t panels : {0, 1, 2, 3, 15, 16, 17, 64}) {
      std::vector<bool> taken(panels);
      for (int64_t claim = 0; claim < panels; ++claim) {
        const int64_t panel = PanelOfClaim(claim, panels, threads);
        ASSERT_GE(panel, 0);
        ASSERT_LT(panel, panels);
        EXPECT_FALSE(taken[panel]) << panel;
        taken[panel] = true;
      }
    }
  }
}

TEST(PanelOfClaim, ThreadsThatTakeTurnsReadOn) {
  constexpr int64_t kThreads = 3, kPanels = 31;
  for (int64_t claim = kThreads; claim < kPanels - 1; ++claim) {
    EXPECT_EQ(PanelOfClaim(claim, kPanels, kThreads),
              PanelOfClaim(claim - kThreads, kPanels, kThreads) + 1);
  }
}

TEST(ApplyLinear, IsTheAffineMapWithActivationAndResidual) {
  std::mt19937 random(2);
  constexpr int64_t kOut = 150, kIn = 21, kPadded = 192;
  const std::vector<float> weights = Integers(kOut * kIn, random);
  const PackedMatrix packed(weights.data(), kOut, kIn);
  std::vector<float> bias = Integers(kPadded, random);
  std::fill(bias.begin() + kOut, bias.end(), 0.0f);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (const int64_t rows : {1, 4, 17}) {
      const std::vector<float> x = Integers(rows * kIn, random);
      std::vector<float> residual = Integers(rows * kPadded, random);
      std::vector<float> out(rows * kPadded, 99);
      ApplyLinear({&packed, bias.data(), RowActivation::kRelu},
                  {rows,
                   {x.data(), kIn},
                   {residual.data(), kPadded},
                   out.data(),
                   kPadded},
                  pool);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t n = 0; n < kOut; ++n) {
          float sum = bias[n];
          for (int64_t k = 0; k < kIn; ++k) {
            sum += x[r * kIn + k] * weights[n * kIn + k];
          }
          ASSERT_EQ(out[r * kPadded + n],
                    std::max(sum, 0.0f) + residual[r * kPadded + n]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace txl
