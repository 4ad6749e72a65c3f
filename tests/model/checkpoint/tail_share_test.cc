#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/softmax.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/checkpoint/weights.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

ModelConfig TwoClusters() {
  ModelConfig config;
  config.vocab_size = 5000;
  config.n_layer = 1;
  config.n_head = 2;
  config.d_head = 8;
  config.d_model = 16;
  config.d_embed = 16;
  config.d_inner = 16;
  config.mem_len = 2;
  config.cutoffs = {1000, 2000, 4000};
  return config;
}

// The head's softmax over words and clusters for hidden states as a LayerNorm
// gives them; the mean probability of all clusters.
double MeanShare(const Weights& weights) {
  const at::Tensor hidden = at::layer_norm(
      at::sin(at::arange(64 * 16, at::kFloat)).view({64, 16}), {16});
  const at::Tensor words = at::matmul(hidden, weights.head[0].w.t());
  const at::Tensor clusters =
      at::matmul(hidden, weights.cluster_w.t()) + weights.cluster_b;
  const at::Tensor p = at::softmax(at::cat({words, clusters}, 1), 1);
  return p.slice(1, 1000).sum(1).mean().item<double>();
}

TEST(SetTailShare, TheClustersGetTheirShareOfTheHeadsProbability) {
  for (const double share : {0.01, 0.2, 0.5, 0.9}) {
    Weights weights = RandomWeights(TwoClusters(), 0.02, 5, {});
    ASSERT_TRUE(SetTailShare(share, weights).ok());
    EXPECT_NEAR(MeanShare(weights), share, 0.02 * share) << share;
  }
}

TEST(SetTailShare, SharesOutsideTheOpenUnitIntervalAreRefused) {
  Weights weights = RandomWeights(TwoClusters(), 0.02, 5, {});
  for (const double share : {0.0, 1.0, -0.5, 1.5, std::nan("")}) {
    EXPECT_EQ(SetTailShare(share, weights).code(),
              absl::StatusCode::kInvalidArgument)
        << share;
  }
  EXPECT_EQ(weights.cluster_b.abs().max().item<float>(), 0);
}

TEST(SetTailShare, AModelWithoutCutoffsHasNoTail) {
  ModelConfig config = TwoClusters();
  config.cutoffs.clear();
  Weights weights = RandomWeights(config, 0.02, 5, {});
  EXPECT_THAT(SetTailShare(0.5, weights).message(), HasSubstr("cutoffs"));
}

}  // namespace
}  // namespace txl
