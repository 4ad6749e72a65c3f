// The steps themselves, on a model so small that they can be followed; the
// authors' losses are in golden_losses_test.cc.

#include "model/train/dynamic_evaluation.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "model/train/training_state.h"
#include "tests/model/train/smallest_model.h"

namespace txl {
namespace {

// 7 targets: two segments of 3 and one of 1.
std::vector<int64_t> TinyText() { return {3, 1, 4, 1, 5, 0, 2, 6}; }

EvaluationOptions TinySegments() {
  EvaluationOptions options;
  options.shape = {1, 3};
  return options;
}

using Tensors = std::map<std::string, at::Tensor>;

Tensors Values(const Weights& weights) {
  Tensors values;
  for (const auto& [name, value] : weights.Named()) {
    values[name] = value.detach().clone();
  }
  return values;
}

// Gradients of the segment [begin, begin + 3) of the text, without a past.
Tensors FirstGradients() {
  const ModelConfig config = SmallestConfig();
  Weights weights = SmallestWeights();
  const auto parameters = MakeTrainable(config, weights);
  const ReferenceNetwork network(config, weights);
  SegmentMemory memory = network.InitialMemory(1);
  const at::Tensor ids = at::tensor(TinyText(), at::kLong);
  network
      .Nll(network.Forward(ids.narrow(0, 0, 3).unsqueeze(0), memory)
               .flatten(0, 1),
           ids.narrow(0, 1, 3))
      .mean()
      .backward();
  Tensors gradients;
  for (const auto& [name, value] : parameters) gradients[name] = value.grad();
  return gradients;
}

void ExpectClose(const at::Tensor& a, const at::Tensor& b,
                 const std::string& name) {
  EXPECT_LT((a - b).abs().max().item<double>(), 1e-12) << name;
}

EvaluationOptions OnlyTheFirst() {
  EvaluationOptions options = TinySegments();
  options.observer = [](const Evaluation&, double) { return false; };
  return options;
}

TEST(DynamicEvaluationTest, ASegmentIsPredictedBeforeItIsLearntFrom) {
  const Weights weights = SmallestWeights();
  const double fixed =
      Evaluate(ReferenceNetwork(SmallestConfig(), SmallestWeights()),
               TinyText(), OnlyTheFirst())
          .nats;
  DynamicOptions options;
  options.learning_rate = 0.5;
  DynamicEvaluation evaluation(SmallestConfig(), weights, options);
  EXPECT_DOUBLE_EQ(evaluation.Run(TinyText(), OnlyTheFirst()).nats, fixed);
  EXPECT_FALSE(weights.layers[0].wq.equal(SmallestWeights().layers[0].wq));
}

TEST(DynamicEvaluationTest, PlainStepsFollowTheGradientOfTheMeanLoss) {
  const Weights weights = SmallestWeights();
  const Tensors before = Values(weights);
  DynamicOptions options;
  options.learning_rate = 0.3;
  DynamicEvaluation(SmallestConfig(), weights, options)
      .Run(TinyText(), OnlyTheFirst());
  const Tensors after = Values(weights);
  for (const auto& [name, gradient] : FirstGradients()) {
    ExpectClose(after.at(name), before.at(name) - 0.3 * gradient, name);
  }
}

TEST(DynamicEvaluationTest, ScaledStepsDivideByTheRootOfTheGatheredSquares) {
  const Weights weights = SmallestWeights();
  const Tensors before = Values(weights);
  DynamicOptions options;
  options.steps = DynamicSteps::kRms;
  options.learning_rate = 0.03;
  options.epsilon = 0.01;
  DynamicEvaluation evaluation(SmallestConfig(), weights, options);
  // Twice the same segment at the same weights: twice its squares.
  evaluation.Gather(TinyText(), OnlyTheFirst());
  evaluation.Gather(TinyText(), OnlyTheFirst());
  for (const auto& [name, value] : Values(weights)) {
    EXPECT_TRUE(value.equal(before.at(name))) << name;
  }
  evaluation.Run(TinyText(), OnlyTheFirst());
  const Tensors after = Values(weights);
  for (const auto& [name, g] : FirstGradients()) {
    const at::Tensor scaled =
        name == "emb.0.w" ? 0.03 * g : 0.03 * g / ((2 * g * g).sqrt() + 0.01);
    ExpectClose(after.at(name), before.at(name) - scaled, name);
  }
}

// The distance of the weights from the model's after a whole text.
double DistanceMoved(double decay) {
  const Weights weights = SmallestWeights();
  const Tensors before = Values(weights);
  DynamicOptions options;
  options.steps = DynamicSteps::kRms;
  options.learning_rate = 0.03;
  options.decay = decay;
  DynamicEvaluation evaluation(SmallestConfig(), weights, options);
  evaluation.Gather(TinyText(), TinySegments());
  evaluation.Run(TinyText(), TinySegments());
  double squares = 0;
  for (const auto& [name, value] : Values(weights)) {
    if (name.ends_with(".w")) continue;  // tables do not decay
    squares += (value - before.at(name)).square().sum().item<double>();
  }
  return squares;
}

TEST(DynamicEvaluationTest, DecayHoldsTheWeightsNearTheModels) {
  EXPECT_LT(DistanceMoved(2), 0.95 * DistanceMoved(0));
}

TEST(DynamicEvaluationTest, ATextThatRepeatsBecomesLikelier) {
  std::vector<int64_t> text;
  for (int i = 0; i < 40; ++i) text.insert(text.end(), {1, 5, 2, 6});
  const double fixed =
      Evaluate(ReferenceNetwork(SmallestConfig(), SmallestWeights()), text,
               TinySegments())
          .nats;
  DynamicOptions options;
  options.learning_rate = 0.05;
  DynamicEvaluation evaluation(SmallestConfig(), SmallestWeights(), options);
  EXPECT_LT(evaluation.Run(text, TinySegments()).nats, fixed - 0.5);
}

}  // namespace
}  // namespace txl
