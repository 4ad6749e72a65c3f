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
      EXPECT_EQ(packed.panel(0)[k * kPanel + lane], lane < 3 ? 1 : 0);
    }
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
