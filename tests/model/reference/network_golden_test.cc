// The reference network against what the original public code computes from
// the same weights: every family, both ways of feeding, both precisions.

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/reference/network.h"
#include "tests/model/reference/golden_case.h"

namespace txl {
namespace {

struct Fed {
  at::Tensor logprobs;  // [T, V]
  at::Tensor memory;    // [L, m, d]
};

// [1, T]; undefined where the model counts none.
at::Tensor Ticks(const GoldenCase& golden) {
  if (!golden.config.beat_positions.has_value()) return {};
  BeatCounter counter(*golden.config.beat_positions);
  const at::Tensor ticks = golden.expected.at("tokens").clone();
  int64_t* data = ticks.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < ticks.numel(); ++i) {
    const int64_t id = data[i];
    data[i] = counter.ticks();
    counter.Add(static_cast<int32_t>(id));
  }
  return ticks.unsqueeze(0);
}

Fed Feed(const GoldenCase& golden, const std::vector<int64_t>& segments) {
  const at::NoGradGuard no_grad;
  const ReferenceNetwork network(golden.config, golden.weights);
  const at::Tensor tokens = golden.expected.at("tokens").unsqueeze(0);
  const at::Tensor ticks = Ticks(golden);
  SegmentMemory memory = network.InitialMemory(1);
  std::vector<at::Tensor> logprobs;
  int64_t begin = 0;
  for (int64_t length : segments) {
    ForwardOptions options;
    if (ticks.defined()) options.ticks = ticks.narrow(1, begin, length);
    const at::Tensor hidden =
        network.Forward(tokens.narrow(1, begin, length), memory, options);
    logprobs.push_back(network.LogProbs(hidden).squeeze(0));
    begin += length;
  }
  std::vector<at::Tensor> layers;
  for (const at::Tensor& rows : memory.layers) {
    layers.push_back(rows.squeeze(0));
  }
  return {at::cat(logprobs), at::stack(layers)};
}

std::vector<int64_t> Segments(const GoldenCase& golden) {
  const at::Tensor segments = golden.expected.at("segments");
  const int64_t* data = segments.const_data_ptr<int64_t>();
  return {data, data + segments.numel()};
}

std::vector<int64_t> SingleTokens(const GoldenCase& golden) {
  return std::vector<int64_t>(golden.expected.at("tokens").numel(), 1);
}

class GoldenNetworkTest : public testing::TestWithParam<std::string> {
 protected:
  void ExpectBothRunsWithin(const GoldenCase& golden, double tolerance,
                            double memory_tolerance) {
    const Fed segmented = Feed(golden, Segments(golden));
    EXPECT_LE(MaxDifference(segmented.logprobs,
                            golden.expected.at("logprobs_segmented")),
              tolerance);
    EXPECT_LE(
        MaxDifference(segmented.memory, golden.expected.at("memory_final")),
        memory_tolerance);
    const Fed stepwise = Feed(golden, SingleTokens(golden));
    EXPECT_LE(MaxDifference(stepwise.logprobs,
                            golden.expected.at("logprobs_stepwise")),
              tolerance);
    EXPECT_LE(MaxDifference(stepwise.memory,
                            golden.expected.at("memory_final_stepwise")),
              memory_tolerance);
  }
};

TEST_P(GoldenNetworkTest, Float64EqualsTheOriginalCodeTo1e9) {
  const GoldenCase golden = LoadGoldenCase(GetParam(), at::kDouble);
  ASSERT_FALSE(HasFailure());
  ExpectBothRunsWithin(golden, 1e-9, 1e-9);
}

TEST_P(GoldenNetworkTest, Float32IsAsCloseAsTheOriginalCodeInFloat32) {
  const GoldenCase golden = LoadGoldenCase(GetParam(), at::kFloat);
  ASSERT_FALSE(HasFailure());
  const double tolerance = std::max(2e-5, 3 * golden.original_float32_error);
  ExpectBothRunsWithin(golden, tolerance, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(EveryCase, GoldenNetworkTest,
                         testing::ValuesIn(GoldenCaseNames()),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(GoldenDataTest, AllEighteenCasesAreThere) {
  EXPECT_EQ(GoldenCaseNames().size(), 19u);
}

}  // namespace
}  // namespace txl
