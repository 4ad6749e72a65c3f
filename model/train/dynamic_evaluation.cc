#include "model/train/dynamic_evaluation.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include "model/train/training_state.h"

namespace txl {

DynamicEvaluation::DynamicEvaluation(const ModelConfig& config, Weights weights,
                                     const DynamicOptions& options)
    : options_(options), network_([&] {
        for (const auto& [name, value] : MakeTrainable(config, weights)) {
          const at::Tensor plain = value.detach();
          parameters_.push_back(
              {value, name.starts_with("emb.") && name.ends_with(".w"),
               at::zeros_like(plain), at::zeros_like(plain)});
        }
        return ReferenceNetwork(config, std::move(weights));
      }()) {}

void DynamicEvaluation::Gather(absl::Span<const int64_t> ids,
                               EvaluationOptions options) {
  options.learn = [this](const at::Tensor& loss) {
    loss.backward();
    const at::NoGradGuard no_grad;
    for (Parameter& p : parameters_) {
      const at::Tensor gradient = p.value.grad();
      if (gradient.defined()) p.squares += gradient * gradient;
      p.value.mutable_grad().reset();
    }
  };
  Evaluate(network_, ids, options);
}

Evaluation DynamicEvaluation::Run(absl::Span<const int64_t> ids,
                                  EvaluationOptions options) {
  options.learn = [this](const at::Tensor& loss) {
    loss.backward();
    Step();
  };
  return Evaluate(network_, ids, options);
}

void DynamicEvaluation::Step() {
  const at::NoGradGuard no_grad;
  for (Parameter& p : parameters_) {
    // A cluster that the segment lacks has no gradient and decays all the same.
    at::Tensor gradient = p.value.grad();
    if (!gradient.defined()) gradient = at::zeros_like(p.value);
    at::Tensor update = gradient * options_.learning_rate;
    if (options_.steps == DynamicSteps::kRms && !p.is_table) {
      const at::Tensor rms = p.squares.sqrt();
      update =
          update / (rms + options_.epsilon) + rms * p.moved * options_.decay;
    }
    p.value -= update;
    p.moved -= update;
    p.value.mutable_grad().reset();
  }
}

}  // namespace txl
