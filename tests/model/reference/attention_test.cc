#include "model/reference/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

namespace txl {
namespace {

Weights WeightsOf(at::ScalarType dtype) {
  Weights weights;
  weights.embedding.push_back({at::zeros({1, 1}, dtype), at::Tensor()});
  return weights;
}

ModelConfig SinusoidConfig(int64_t d_model) {
  ModelConfig config;
  config.d_model = d_model;
  return config;
}

// q queries over m memory rows, and themselves.
class RelativeShiftTest
    : public testing::TestWithParam<std::tuple<int64_t, int64_t>> {};

TEST_P(RelativeShiftTest, PicksForEveryKeyTheScoreOfItsDistance) {
  const auto [q, m] = GetParam();
  const int64_t keys = m + q;
  // Column c scores distance keys - c: write query and distance into it.
  const at::Tensor distance = keys - at::arange(keys + 1, at::kDouble);
  const at::Tensor query = at::arange(q, at::kDouble).unsqueeze(1) * 1000;
  const at::Tensor x = (query + distance).repeat({2, 3, 1, 1});

  const at::Tensor y = RelativeShift(x);

  ASSERT_EQ(y.sizes(), at::IntArrayRef({2, 3, q, keys}));
  for (int64_t i = 0; i < q; ++i) {
    for (int64_t j = 0; j <= m + i; ++j) {
      EXPECT_EQ(y[1][2][i][j].item<double>(), 1000.0 * i + (m + i - j))
          << "query " << i << " key " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(SegmentsShorterAsLongAsAndLongerThanMemory,
                         RelativeShiftTest,
                         testing::Values(std::tuple(1, 0), std::tuple(1, 1),
                                         std::tuple(1, 7), std::tuple(3, 7),
                                         std::tuple(7, 7), std::tuple(9, 4),
                                         std::tuple(6, 0)));

TEST(OneQueryShiftTest, IsTheIdentityOnTheDistances) {
  const at::Tensor x = at::rand({1, 1, 6});
  EXPECT_TRUE(RelativeShift(x).equal(x.narrow(2, 1, 5)));
}

TEST(PositionEncodingTest, IsSinesThenCosinesOfDistanceTimesFrequency) {
  const ModelConfig config = SinusoidConfig(6);
  const at::Tensor r = PositionEncoding(config, WeightsOf(at::kDouble), 40);
  ASSERT_EQ(r.sizes(), at::IntArrayRef({40, 6}));
  for (int64_t k : {0, 1, 17, 39}) {
    for (int64_t i = 0; i < 3; ++i) {
      const double angle = k / std::pow(10000.0, 2.0 * i / 6);
      EXPECT_NEAR(r[k][i].item<double>(), std::sin(angle), 1e-13);
      EXPECT_NEAR(r[k][3 + i].item<double>(), std::cos(angle), 1e-13);
    }
  }
}

TEST(PositionEncodingTest, TakesTheFrequenciesOfTheCheckpoint) {
  Weights weights = WeightsOf(at::kDouble);
  weights.inv_freq = at::tensor({0.5, 0.25}, at::kDouble);
  const at::Tensor r = PositionEncoding(SinusoidConfig(4), weights, 4);
  EXPECT_NEAR(r[3][1].item<double>(), std::sin(0.75), 1e-15);
  EXPECT_NEAR(r[3][2].item<double>(), std::cos(1.5), 1e-15);
}

TEST(PositionEncodingTest, ClampGivesFartherDistancesTheClampsOwnRow) {
  ModelConfig config = SinusoidConfig(6);
  const at::Tensor free = PositionEncoding(config, WeightsOf(at::kFloat), 12);
  config.clamp_len = 5;
  const at::Tensor r = PositionEncoding(config, WeightsOf(at::kFloat), 12);
  EXPECT_TRUE(r.narrow(0, 0, 6).equal(free.narrow(0, 0, 6)));
  for (int64_t k = 6; k < 12; ++k) EXPECT_TRUE(r[k].equal(free[5]));
}

TEST(PositionEncodingTest, RawInterleavedUsesTheColumnIndexInTheExponent) {
  ModelConfig config = SinusoidConfig(5);
  config.pos = PositionKind::kSinInterleavedRaw;
  const at::Tensor r = PositionEncoding(config, WeightsOf(at::kDouble), 9);
  for (int64_t c = 0; c < 5; ++c) {
    const double angle = 8 / std::pow(10000.0, 2.0 * c / 5);
    EXPECT_NEAR(r[8][c].item<double>(),
                c % 2 == 0 ? std::sin(angle) : std::cos(angle), 1e-13);
  }
}

TEST(TableRowsTest, DistancesBeyondTheTableUseItsFarthestRow) {
  const at::Tensor table = at::arange(4).unsqueeze(1);
  const at::Tensor rows = TableRows(ModelConfig(), table, 6).flatten();
  EXPECT_TRUE(rows.equal(at::tensor({0, 1, 2, 3, 3, 3}, at::kLong)));
}

TEST(TableRowsTest, AClampOfCKeepsTheRowsBelowC) {
  ModelConfig config;
  config.clamp_len = 3;
  const at::Tensor table = at::arange(9).unsqueeze(1);
  const at::Tensor rows = TableRows(config, table, 5).flatten();
  EXPECT_TRUE(rows.equal(at::tensor({0, 1, 2, 2, 2}, at::kLong)));
}

}  // namespace

}  // namespace txl
