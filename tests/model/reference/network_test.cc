// Properties of the reference network that golden data do not state.

#include "model/reference/network.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/model/reference/golden_case.h"

namespace txl {
namespace {

ModelConfig SmallConfig() {
  ModelConfig config;
  config.vocab_size = 11;
  config.n_layer = 2;
  config.n_head = 2;
  config.d_head = 3;
  config.d_model = config.d_embed = 8;
  config.d_inner = 10;
  config.mem_len = 5;
  config.tie_weight = true;
  config.tie_projs = {false};
  return config;
}

Weights DoubleWeights(const ModelConfig& config) {
  return RandomWeights(config, 0.5, 5, {at::kDouble, at::kCPU});
}

// The same in every run; ten of them are in every bin of cutoffs 3 and 7.
at::Tensor SomeTokens(int64_t batch, int64_t length) {
  return at::arange(batch * length, at::kLong)
      .mul(7)
      .remainder(11)
      .view({batch, length});
}

at::Tensor FeedInCuts(const ReferenceNetwork& network, const at::Tensor& tokens,
                      const std::vector<int64_t>& cuts) {
  const at::NoGradGuard no_grad;
  SegmentMemory memory = network.InitialMemory(tokens.size(0));
  std::vector<at::Tensor> hidden;
  int64_t begin = 0;
  for (int64_t cut : cuts) {
    hidden.push_back(network.Forward(tokens.narrow(1, begin, cut), memory));
    begin += cut;
  }
  return at::cat(hidden, 1);
}

TEST(ReferenceNetworkTest, AWindowWithinMemoryMakesCutsIrrelevant) {
  for (MemoryInit init : {MemoryInit::kEmpty, MemoryInit::kZeros}) {
    ModelConfig config = SmallConfig();
    config.window = config.mem_len + 1;
    config.mem_init = init;
    const ReferenceNetwork network(config, DoubleWeights(config));
    const at::Tensor tokens = SomeTokens(2, 14);
    EXPECT_LE(MaxDifference(FeedInCuts(network, tokens, {14}),
                            FeedInCuts(network, tokens, {1, 6, 3, 4})),
              1e-12);
  }
}

TEST(ReferenceNetworkTest, WithoutWindowCutsMatterOnceMemoryIsFull) {
  const ModelConfig config = SmallConfig();
  const ReferenceNetwork network(config, DoubleWeights(config));
  const at::Tensor tokens = SomeTokens(1, 9);
  const at::Tensor whole = FeedInCuts(network, tokens, {9});
  const at::Tensor single =
      FeedInCuts(network, tokens, std::vector<int64_t>(9, 1));
  EXPECT_LE(MaxDifference(whole.narrow(1, 0, 6), single.narrow(1, 0, 6)),
            1e-12);
  EXPECT_GT(MaxDifference(whole.narrow(1, 6, 1), single.narrow(1, 6, 1)), 1e-4);
}

TEST(ReferenceNetworkTest, SequencesOfABatchDoNotSeeEachOther) {
  const ModelConfig config = SmallConfig();
  const ReferenceNetwork network(config, DoubleWeights(config));
  const at::Tensor tokens = SomeTokens(3, 9);
  const at::Tensor together = FeedInCuts(network, tokens, {4, 5});
  for (int64_t b = 0; b < 3; ++b) {
    EXPECT_LE(
        MaxDifference(together.narrow(0, b, 1),
                      FeedInCuts(network, tokens.narrow(0, b, 1), {4, 5})),
        1e-12);
  }
}

TEST(ReferenceNetworkTest, MemLenZeroKeepsNothing) {
  ModelConfig config = SmallConfig();
  config.mem_len = 0;
  const ReferenceNetwork network(config, DoubleWeights(config));
  const at::Tensor tokens = SomeTokens(1, 6);
  SegmentMemory memory = network.InitialMemory(1);
  network.Forward(tokens.narrow(1, 0, 3), memory);
  EXPECT_EQ(memory.layers[1].size(1), 0);
  const at::Tensor second = network.Forward(tokens.narrow(1, 3, 3), memory);
  EXPECT_LE(
      MaxDifference(second, FeedInCuts(network, tokens.narrow(1, 3, 3), {3})),
      1e-12);
}

TEST(ReferenceNetworkTest, MemoryIsTheLastInputsOfEveryLayer) {
  const ModelConfig config = SmallConfig();
  const ReferenceNetwork network(config, DoubleWeights(config));
  SegmentMemory memory = network.InitialMemory(1);
  const at::Tensor tokens = SomeTokens(1, 12);
  network.Forward(tokens.narrow(1, 0, 4), memory);
  EXPECT_EQ(memory.layers[0].size(1), 4);
  network.Forward(tokens.narrow(1, 4, 8), memory);
  EXPECT_EQ(memory.layers[0].size(1), 5);
  // The first layer's inputs are the scaled embeddings.
  const at::Tensor embedded =
      at::embedding(network.weights().embedding[0].w, tokens) * std::sqrt(8.0);
  EXPECT_LE(MaxDifference(memory.layers[0], embedded.narrow(1, 7, 5)), 1e-12);
}

TEST(ReferenceNetworkTest, GradientStopsAtTheSegmentBorder) {
  const ModelConfig config = SmallConfig();
  Weights weights = DoubleWeights(config);
  for (auto& [name, tensor] : weights.Named()) {
    tensor.set_requires_grad(true);
  }
  const ReferenceNetwork network(config, weights);
  SegmentMemory memory = network.InitialMemory(1);
  network.Forward(SomeTokens(1, 4), memory);
  for (const at::Tensor& rows : memory.layers) {
    EXPECT_FALSE(rows.requires_grad());
  }
}

// Central differences of the loss in every parameter, a few elements each.
void ExpectGradientsEqualFiniteDifferences(const ModelConfig& config) {
  Weights weights = DoubleWeights(config);
  const at::Tensor past = SomeTokens(2, 4);
  const at::Tensor tokens = SomeTokens(2, 5);
  const at::Tensor targets = SomeTokens(2, 5).flatten();
  const auto parameters = weights.Named();
  for (const auto& [name, tensor] : parameters) tensor.set_requires_grad(true);
  const ReferenceNetwork network(config, weights);
  SegmentMemory start = network.InitialMemory(2);
  network.Forward(past, start);  // detached: a constant of the loss
  const auto loss = [&] {
    SegmentMemory memory = start;
    DropoutStream dropout(1, 1);
    const ForwardOptions options{0.2, 0.1, &dropout};
    return network
        .Nll(network.Forward(tokens, memory, options).flatten(0, 1), targets)
        .mean();
  };
  loss().backward();
  const at::NoGradGuard no_grad;
  constexpr double kStep = 1e-5;
  for (const auto& [name, tensor] : parameters) {
    if (name == "pos.inv_freq") continue;
    ASSERT_TRUE(tensor.grad().defined()) << name;
    const at::Tensor flat = tensor.detach().view(-1);
    for (int64_t i = 0; i < flat.numel(); i += 1 + flat.numel() / 5) {
      const double value = flat[i].item<double>();
      flat[i].fill_(value + kStep);
      const double above = loss().item<double>();
      flat[i].fill_(value - kStep);
      const double below = loss().item<double>();
      flat[i].fill_(value);
      EXPECT_NEAR(tensor.grad().view(-1)[i].item<double>(),
                  (above - below) / (2 * kStep), 1e-7)
          << name << "[" << i << "]";
    }
  }
}

TEST(ReferenceNetworkTest, GradientsEqualFiniteDifferencesPostNorm) {
  ExpectGradientsEqualFiniteDifferences(SmallConfig());
}

TEST(ReferenceNetworkTest, GradientsEqualFiniteDifferencesPreNormAdaptive) {
  ModelConfig config = SmallConfig();
  config.norm = NormPlacement::kPre;
  config.final_norm = true;
  config.act = Activation::kGeluTanh;
  config.cutoffs = {3, 7};
  config.div_val = 2;
  config.emb_proj_bin0 = true;
  config.tie_weight = false;
  config.tie_projs = {false, false, false};
  config.clamp_len = 3;
  config.window = 6;
  ExpectGradientsEqualFiniteDifferences(config);
}

TEST(ReferenceNetworkTest, GradientsEqualFiniteDifferencesPositionTables) {
  ModelConfig config = SmallConfig();
  config.pos = PositionKind::kTable;
  config.ff_out_act = Activation::kGeluTanh;
  ExpectGradientsEqualFiniteDifferences(config);
}

}  // namespace
}  // namespace txl
