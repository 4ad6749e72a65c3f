#include "model/reference/adaptive_softmax.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/reference/golden_case.h"

namespace txl {
namespace {

// Three bins of widths 16, 8 and 4 with projections.
ModelConfig ThreeBins() {
  ModelConfig config;
  config.vocab_size = 30;
  config.n_layer = 1;
  config.n_head = 2;
  config.d_head = 4;
  config.d_model = 12;
  config.d_embed = 16;
  config.d_inner = 8;
  config.cutoffs = {8, 18};
  config.div_val = 2;
  config.emb_proj_bin0 = true;
  config.tie_weight = false;
  config.tie_projs = {false, false, false};
  config.mem_len = 4;
  return config;
}

class AdaptiveSoftmaxTest : public testing::Test {
 protected:
  AdaptiveSoftmaxTest()
      : config_(ThreeBins()),
        weights_(RandomWeights(config_, 0.7, 3, {at::kDouble, at::kCPU})),
        hidden_(at::randn({5, 12}, at::kDouble)) {}

  ModelConfig config_;
  Weights weights_;
  at::Tensor hidden_;  // [5, d]
};

TEST_F(AdaptiveSoftmaxTest, IsADistributionOverTheWholeVocabulary) {
  const at::Tensor logprobs = AdaptiveLogProbs(config_, weights_, hidden_);
  ASSERT_EQ(logprobs.sizes(), at::IntArrayRef({5, 30}));
  EXPECT_LE(MaxDifference(logprobs.exp().sum(1), at::ones({5})), 1e-12);
}

TEST_F(AdaptiveSoftmaxTest, AClusterColumnIsTheMassOfItsTokens) {
  // Forward order: the head's column n_0 + b - 1 is bin b.
  const HeadBin& head = weights_.head[0];
  const at::Tensor x = hidden_.matmul(head.proj);
  const at::Tensor logits =
      at::cat({x.matmul(head.w.t()) + head.b,
               x.matmul(weights_.cluster_w.t()) + weights_.cluster_b},
              1);
  const at::Tensor mass = at::softmax(logits, 1);
  const at::Tensor p = AdaptiveLogProbs(config_, weights_, hidden_).exp();
  EXPECT_LE(MaxDifference(p.narrow(1, 0, 8), mass.narrow(1, 0, 8)), 1e-12);
  EXPECT_LE(MaxDifference(p.narrow(1, 8, 10).sum(1), mass.select(1, 8)), 1e-12);
  EXPECT_LE(MaxDifference(p.narrow(1, 18, 12).sum(1), mass.select(1, 9)),
            1e-12);
}

TEST_F(AdaptiveSoftmaxTest, NllOfTargetsEqualsTheFullDistribution) {
  const at::Tensor targets = at::tensor({0, 7, 8, 17, 29}, at::kLong);
  const at::Tensor full = AdaptiveLogProbs(config_, weights_, hidden_);
  EXPECT_LE(MaxDifference(AdaptiveNll(config_, weights_, hidden_, targets),
                          -full.gather(1, targets.unsqueeze(1)).squeeze(1)),
            1e-12);
}

TEST_F(AdaptiveSoftmaxTest, NllLooksOnlyIntoClustersThatOccur) {
  weights_.head[2].w.fill_(std::nan(""));
  const at::Tensor targets = at::tensor({0, 7, 8, 17, 9}, at::kLong);
  EXPECT_TRUE(AdaptiveNll(config_, weights_, hidden_, targets)
                  .isfinite()
                  .all()
                  .item<bool>());
}

TEST_F(AdaptiveSoftmaxTest, EmbeddingProjectsEachBinAndScales) {
  const at::Tensor tokens = at::tensor({3, 17, 18, 8}, at::kLong).view({2, 2});
  const at::Tensor embedded = Embed(config_, weights_, tokens);
  const auto row = [&](int64_t bin, int64_t index) {
    const EmbeddingBin& b = weights_.embedding[bin];
    return b.proj.mv(b.w[index]) * std::sqrt(12.0);
  };
  ASSERT_EQ(embedded.sizes(), at::IntArrayRef({2, 2, 12}));
  EXPECT_LE(MaxDifference(embedded[0][0], row(0, 3)), 1e-12);
  EXPECT_LE(MaxDifference(embedded[0][1], row(1, 9)), 1e-12);
  EXPECT_LE(MaxDifference(embedded[1][0], row(2, 0)), 1e-12);
  EXPECT_LE(MaxDifference(embedded[1][1], row(1, 0)), 1e-12);
  config_.scale_embedding = false;
  EXPECT_LE(
      MaxDifference(Embed(config_, weights_, tokens)[0][0] * std::sqrt(12.0),
                    row(0, 3)),
      1e-12);
}

TEST_F(AdaptiveSoftmaxTest, BeatAndBarAreAddedBehindTheScale) {
  const at::Tensor tokens = at::tensor({3, 17, 5, 8}, at::kLong).view({2, 2});
  const at::Tensor plain = Embed(config_, weights_, tokens);
  config_.beat_positions = BeatPositions{1, 9, 4, 5, 4, 3};
  weights_.beat = at::randn({4, 12}, at::kDouble);
  weights_.bar = at::randn({3, 12}, at::kDouble);
  // Token 5 restarts; 14 ticks are 2 of the bar behind the last.
  const at::Tensor ticks = at::tensor({0, 7, 9, 14}, at::kLong).view({2, 2});
  const at::Tensor added = Embed(config_, weights_, tokens, ticks) - plain;
  EXPECT_LE(MaxDifference(added[0][0], weights_.beat[0] + weights_.bar[0]),
            1e-12);
  EXPECT_LE(MaxDifference(added[0][1], weights_.beat[3] + weights_.bar[1]),
            1e-12);
  EXPECT_LE(MaxDifference(added[1][0], weights_.beat[0] + weights_.bar[0]),
            1e-12);
  EXPECT_LE(MaxDifference(added[1][1], weights_.beat[2] + weights_.bar[0]),
            1e-12);
}

TEST_F(AdaptiveSoftmaxTest, RowZeroOfBeatAndBarIsNotTrained) {
  config_.beat_positions = BeatPositions{1, 9, 4, 5, 4, 3};
  weights_.beat = at::randn({4, 12}, at::kDouble).requires_grad_();
  weights_.bar = at::randn({3, 12}, at::kDouble).requires_grad_();
  const at::Tensor tokens = at::tensor({3, 17}, at::kLong);
  Embed(config_, weights_, tokens, at::tensor({0, 5}, at::kLong))
      .sum()
      .backward();
  EXPECT_EQ(weights_.beat.grad()[0].abs().sum().item<double>(), 0);
  EXPECT_EQ(weights_.bar.grad()[0].abs().sum().item<double>(), 0);
  EXPECT_EQ(weights_.beat.grad()[1].sum().item<double>(), 12);
  EXPECT_EQ(weights_.bar.grad()[1].sum().item<double>(), 12);
}

}  // namespace
}  // namespace txl
