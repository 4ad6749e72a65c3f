#include "model/train/evaluation.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/model/train/smallest_model.h"

namespace txl {
namespace {

// What a token sees does not depend on where segments begin.
ReferenceNetwork SmallestNetwork() {
  ModelConfig config = SmallestConfig();
  config.window = config.mem_len + 1;
  return ReferenceNetwork(config, SmallestWeights());
}

std::vector<int64_t> Text() { return {3, 1, 4, 1, 5, 0, 2, 6, 5, 3, 5, 6, 2}; }

// Mean of -log p(next), the whole text in one call.
double DirectNats(const ReferenceNetwork& network,
                  const std::vector<int64_t>& text) {
  const at::NoGradGuard no_grad;
  SegmentMemory memory = network.InitialMemory(1);
  const at::Tensor ids = at::tensor(text, at::kLong);
  const int64_t n = ids.size(0) - 1;
  const at::Tensor logprobs = network.LogProbs(
      network.Forward(ids.narrow(0, 0, n).unsqueeze(0), memory));
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum -= logprobs[0][i][text[i + 1]].item<double>();
  }
  return sum / static_cast<double>(n);
}

TEST(EvaluationTest, OneStreamIsTheTextsLikelihoodForEverySegmentLength) {
  const ReferenceNetwork network = SmallestNetwork();
  const double expected = DirectNats(network, Text());
  for (int64_t segment : {1, 3, 5, 12, 100}) {
    EvaluationOptions options;
    options.shape = {1, segment};
    const Evaluation result = Evaluate(network, Text(), options);
    EXPECT_NEAR(result.nats, expected, 1e-12) << segment;
    EXPECT_EQ(result.tokens, 12);
  }
}

TEST(EvaluationTest, StreamsStartWithoutPastOfTheirOwn) {
  const ReferenceNetwork network = SmallestNetwork();
  EvaluationOptions options;
  options.shape = {2, 4};
  // 12 targets: the streams are tokens 0..6 and 6..12.
  const std::vector<int64_t> text = Text();
  const double expected =
      (DirectNats(network, {text.begin(), text.begin() + 7}) +
       DirectNats(network, {text.begin() + 6, text.end()})) /
      2;
  EXPECT_NEAR(Evaluate(network, text, options).nats, expected, 1e-12);
}

TEST(EvaluationTest, TheObserverSeesTheShareAndCanEnd) {
  EvaluationOptions options;
  options.shape = {1, 3};
  std::vector<double> shares;
  options.observer = [&](const Evaluation&, double share) {
    shares.push_back(share);
    return shares.size() < 2;
  };
  const Evaluation result = Evaluate(SmallestNetwork(), Text(), options);
  EXPECT_EQ(shares, (std::vector<double>{0.25, 0.5}));
  EXPECT_EQ(result.tokens, 6);
}

TEST(EvaluationTest, BitsAndPerplexityAreOfTheSameLikelihood) {
  Evaluation evaluation;
  evaluation.nats = std::log(8);
  EXPECT_NEAR(evaluation.bits(), 3, 1e-12);
  EXPECT_NEAR(evaluation.perplexity(), 8, 1e-12);
}

}  // namespace
}  // namespace txl
