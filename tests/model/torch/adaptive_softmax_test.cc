#include "model/torch/adaptive_softmax.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "model/reference/network.h"
#include "tests/model/torch/golden_case.h"

namespace txl {
namespace {

// One case each: no bins, bins with one projection, bins of shrinking width,
// untied bins without bias.
class AdaptiveSoftmaxTest : public testing::TestWithParam<std::string> {
 protected:
  AdaptiveSoftmaxTest() : golden_(LoadGoldenCase(GetParam(), at::kDouble)) {}

  GoldenCase golden_;
};

TEST_P(AdaptiveSoftmaxTest, IsADistributionOverTheWholeVocabulary) {
  at::manual_seed(5);
  const at::Tensor hidden = at::randn({3, golden_.config.d_model}, at::kDouble);
  const at::Tensor logprobs =
      FullLogProbs(golden_.config, golden_.weights, hidden, 2);
  ASSERT_EQ(logprobs.size(0), 3);
  ASSERT_EQ(logprobs.size(1), golden_.config.vocab_size);
  EXPECT_TRUE(at::allclose(logprobs.exp().sum(1), at::ones({3}, at::kDouble)));
}

TEST_P(AdaptiveSoftmaxTest, EqualsTheReferenceNetwork) {
  at::manual_seed(6);
  const at::Tensor hidden = at::randn({5, golden_.config.d_model}, at::kDouble);
  const ReferenceNetwork reference(golden_.config, golden_.weights);
  EXPECT_TRUE(
      at::allclose(FullLogProbs(golden_.config, golden_.weights, hidden, 4),
                   reference.LogProbs(hidden), 0, 1e-12));
}

TEST_P(AdaptiveSoftmaxTest, EmbedsEveryIdFromItsBin) {
  const ModelConfig& config = golden_.config;
  std::vector<int32_t> ids(config.vocab_size);
  std::iota(ids.rbegin(), ids.rend(), 0);  // descending: bins interleave rows
  const at::Tensor rows = EmbedTokens(config, golden_.weights, {ids, {}}, 16);
  ASSERT_EQ(rows.size(0) % 16, 0);
  const double scale =
      config.scale_embedding ? std::sqrt(double(config.d_model)) : 1;
  for (size_t row = 0; row < ids.size(); ++row) {
    int64_t bin = 0;
    while (ids[row] >= config.bin_begin(bin + 1)) ++bin;
    const EmbeddingBin& table = golden_.weights.embedding[bin];
    at::Tensor expected = table.w[ids[row] - config.bin_begin(bin)];
    if (table.proj.defined()) expected = table.proj.mv(expected);
    ASSERT_TRUE(at::allclose(rows[row], expected * scale)) << ids[row];
  }
  const int64_t used = static_cast<int64_t>(ids.size());
  EXPECT_EQ(
      rows.narrow(0, used, rows.size(0) - used).abs().sum().item<double>(), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, AdaptiveSoftmaxTest,
                         testing::Values("kimi-char", "kimi-adaptive-div1",
                                         "hf-adaptive", "nvidia-adaptive",
                                         "thu"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace txl
