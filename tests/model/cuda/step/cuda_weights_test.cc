// Where every weight lies on the device: each head padded by itself, zeros
// behind.

#include "model/cuda/step/cuda_weights.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "model/cuda/kernels/linear.h"
#include "tests/model/cuda/device_data.h"
#include "tests/model/cuda/step/random_case.h"

namespace txl::cuda {
namespace {

// Entry [b][n][k] of a matrix, 0 where it is padding.
using Entry = std::function<double(int b, int n, int k)>;

template <typename T>
void ExpectMatrix(const char* name, const DeviceMatrix<T>& matrix,
                  const Entry& entry) {
  SCOPED_TRACE(name);
  const std::vector<T> numbers = ToHost(matrix.numbers);
  ASSERT_EQ(static_cast<int64_t>(numbers.size()),
            int64_t{matrix.batch} * matrix.outputs * matrix.inputs);
  EXPECT_EQ(matrix.outputs % kLinearUnit, 0);
  EXPECT_EQ(matrix.inputs % kLinearUnit, 0);
  int64_t wrong = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int k = static_cast<int>(i) % matrix.inputs;
    const int n = static_cast<int>(i) / matrix.inputs % matrix.outputs;
    const int b = static_cast<int>(i) / matrix.inputs / matrix.outputs;
    const float expected = static_cast<float>(entry(b, n, k));
    wrong += Widen(numbers[i]) != Widen(Narrow<T>(expected));
  }
  EXPECT_EQ(wrong, 0);
}

double At(const at::Tensor& t, std::initializer_list<int64_t> index) {
  const at::Tensor flat = t.contiguous();
  int64_t at = 0;
  int64_t dim = 0;
  for (const int64_t i : index) {
    if (i >= t.size(dim)) return 0;
    at = at * t.size(dim++) + i;
  }
  return flat.const_data_ptr<float>()[at];
}

// A config whose every width is odd in its way.
ModelConfig OddConfig() {
  ModelConfig config;
  config.vocab_size = 90;
  config.n_layer = 2;
  config.n_head = 3;
  config.d_head = 21;
  config.d_model = 70;
  config.d_embed = 40;
  config.d_inner = 75;
  config.mem_len = 9;
  config.clamp_len = 6;
  config.cutoffs = {20, 50};
  config.div_val = 2;
  config.tie_weight = true;
  config.tie_projs = {false, true, false};
  config.final_norm = true;
  return config;
}

template <typename T>
class CudaWeightsTest : public ::testing::Test {
 protected:
  static constexpr int kHeads = 3;
  static constexpr int kHead = 21;  // D
  static constexpr int kPadded = 64;

  // Row of [H D] that entry n of [H Dp] is; -1: padding.
  static int64_t HeadRow(int n) {
    return n % kPadded < kHead ? n / kPadded * kHead + n % kPadded : -1;
  }

  // Number k of row n of a head's keys: of 128 padded numbers of stored rows,
  // then of distances up to the clamp.
  double Key(const LayerWeights& layer, int head, int n, int k) const {
    const int64_t row = head * kHead + k;
    if (n < 128) return n < 70 ? At(layer.wk, {row, n}) : 0;
    const int delta = n - 128;
    double key = 0;
    for (int i = 0; delta < 7 && i < 70; ++i) {
      const double angle =
          delta / std::pow(model_.config.pos_base, 2.0 * (i % 35) / 70);
      key +=
          At(layer.wr, {row, i}) * (i < 35 ? std::sin(angle) : std::cos(angle));
    }
    return key;
  }

  const RandomCase model_ = CaseOf(OddConfig(), 3, 1);
  const CudaWeights<T> weights_ =
      UploadWeights<T>(model_.config, model_.weights);
};
using WeightFormats = ::testing::Types<float, Bf16, F16>;
TYPED_TEST_SUITE(CudaWeightsTest, WeightFormats);

TYPED_TEST(CudaWeightsTest, HeadsAreAbsorbedAndPaddedEachByItself) {
  using Test = CudaWeightsTest<TypeParam>;
  for (int l = 0; l < 2; ++l) {
    const LayerWeights& from = this->model_.weights.layers[l];
    const CudaLayer<TypeParam>& layer = this->weights_.layers[l];
    ExpectMatrix("wq", layer.wq, [&](int, int n, int k) {
      const int64_t row = Test::HeadRow(n);
      return row < 0 ? 0 : At(from.wq, {row, k});
    });
    ExpectMatrix("values", layer.absorbed_values, [&](int b, int n, int k) {
      return n < Test::kHead ? At(from.wv, {b * Test::kHead + n, k}) : 0;
    });
    ExpectMatrix("wo", layer.wo, [&](int, int n, int k) {
      const int64_t column = Test::HeadRow(k);
      return column < 0 ? 0 : At(from.wo, {n, column});
    });
    ExpectMatrix("ff_w1", layer.ff_w1, [&](int, int n, int k) {
      return At(from.ff_w1, {n, k});
    });
    ExpectMatrix("ff_w2", layer.ff_w2, [&](int, int n, int k) {
      return At(from.ff_w2, {n, k});
    });
  }
}

// Per head Wk_n turned; behind it, by distance, Wr_n R_delta up to the clamp.
TYPED_TEST(CudaWeightsTest, KeysOfRowsAndOfPositionsAreOneMatrix) {
  using Test = CudaWeightsTest<TypeParam>;
  EXPECT_EQ(this->weights_.shape.distances, 7);  // 0..clamp_len
  const LayerWeights& from = this->model_.weights.layers[0];
  const DeviceMatrix<TypeParam>& keys = this->weights_.layers[0].keys;
  EXPECT_EQ(keys.batch, Test::kHeads);
  EXPECT_EQ(keys.outputs, 128 + 64);
  EXPECT_EQ(keys.inputs, Test::kPadded);
  const std::vector<TypeParam> numbers = ToHost(keys.numbers);
  for (int h = 0; h < Test::kHeads; ++h) {
    for (int n = 0; n < 128 + 64; ++n) {
      for (int k = 0; k < Test::kPadded; ++k) {
        const double key = k < Test::kHead ? this->Key(from, h, n, k) : 0;
        const float found = Widen(numbers[(h * 192 + n) * Test::kPadded + k]);
        if (n < 128) {  // weights as they are
          EXPECT_EQ(found, Widen(Narrow<TypeParam>(static_cast<float>(key))));
        } else {
          EXPECT_NEAR(found, key, 1e-5 + std::abs(found) / 250);
        }
      }
    }
  }
}

// u with the keys of rows, v with those of positions; bq, if there is one, with
// both.
TYPED_TEST(CudaWeightsTest, WhatQueryBiasesGiveIsOnceMadeAtLoad) {
  using Test = CudaWeightsTest<TypeParam>;
  const LayerWeights& from = this->model_.weights.layers[1];
  const std::vector<float> numbers = ToHost(this->weights_.layers[1].key_bias);
  ASSERT_EQ(numbers.size(), size_t{Test::kHeads * 192});
  for (int h = 0; h < Test::kHeads; ++h) {
    for (int n = 0; n < 192; ++n) {
      const at::Tensor& bias = n < 128 ? from.u : from.v;
      double expected = 0;
      for (int k = 0; k < Test::kHead; ++k) {
        double of_query = At(bias.reshape({-1}), {h * Test::kHead + k});
        if (from.bq.defined()) {
          of_query += At(from.bq, {h * Test::kHead + k});
        }
        expected += of_query * this->Key(from, h, n, k);
      }
      EXPECT_NEAR(numbers[h * 192 + n], expected, 1e-5);
    }
  }
}

TYPED_TEST(CudaWeightsTest, ClustersFollowTheFirstBinAndTiedTablesAreOne) {
  const Weights& from = this->model_.weights;
  const auto& bins = this->weights_.bins;
  ASSERT_EQ(bins.size(), 3u);
  EXPECT_EQ(bins[0].outputs, 20 + 2);
  ExpectMatrix("words", bins[0].words, [&](int, int n, int k) {
    return n < 20 ? At(from.head[0].w, {n, k})
                  : At(from.cluster_w, {n - 20, k});
  });
  const std::vector<float> bias = ToHost(bins[0].bias);
  ASSERT_EQ(bias.size(), 64u);
  EXPECT_EQ(bias[3], At(from.head[0].b, {3}));
  EXPECT_EQ(bias[21], At(from.cluster_b, {1}));
  EXPECT_EQ(bias[22], 0);
  for (size_t b = 0; b < 3; ++b) {
    EXPECT_FALSE(bins[b].embedding.exists());
    EXPECT_EQ(&bins[b].table(), &bins[b].words);
    ExpectMatrix("in", bins[b].in_proj, [&](int, int n, int k) {
      return At(from.embedding[b].proj, {n, k});
    });
    ExpectMatrix("out", bins[b].out_proj, [&](int, int n, int k) {
      return At(from.head[b].proj, {k, n});
    });
  }
}

TYPED_TEST(CudaWeightsTest, NormsAreZeroBehindTheirWidth) {
  const auto check = [](const Array<float>& array, const at::Tensor& t) {
    const std::vector<float> numbers = ToHost(array);
    ASSERT_EQ(numbers.size(), 128u);
    for (int64_t k = 0; k < 128; ++k) EXPECT_EQ(numbers[k], At(t, {k}));
  };
  const LayerWeights& from = this->model_.weights.layers[0];
  check(this->weights_.layers[0].ln1.gain, from.ln1_g);
  check(this->weights_.layers[0].ln2.shift, from.ln2_b);
  ASSERT_TRUE(this->weights_.final_norm.has_value());
  check(this->weights_.final_norm->gain, this->model_.weights.final_g);
}

}  // namespace
}  // namespace txl::cuda
