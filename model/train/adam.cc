#include "model/train/adam.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace txl {

Adam::Adam(std::vector<std::pair<std::string, at::Tensor>> parameters,
           AdamOptions options)
    : options_(options), parameters_(std::move(parameters)) {
  decayed_.weight_decay = options_.weight_decay;
  for (const auto& [name, parameter] : parameters_) {
    const at::Tensor value = parameter.detach();
    const at::Tensor first = at::zeros_like(value);
    const at::Tensor second = at::zeros_like(value);
    const at::Tensor steps = at::zeros({}, value.options().dtype(at::kFloat));
    // u and v are [H, D] but biases in meaning.
    const bool bias =
        value.dim() < 2 || name.ends_with(".u") || name.ends_with(".v");
    Group& group = bias ? plain_ : decayed_;
    group.parameters.push_back(parameter);
    group.first.push_back(first);
    group.second.push_back(second);
    group.steps.push_back(steps);
    state_.emplace_back("adam.first." + name, first);
    state_.emplace_back("adam.second." + name, second);
    state_.emplace_back("adam.steps." + name, steps);
  }
}

void Adam::ZeroGrad() {
  for (auto& [name, parameter] : parameters_) parameter.mutable_grad().reset();
}

double Adam::Step(double learning_rate) {
  const at::NoGradGuard no_grad;
  double squares = 0;
  for (const auto& [name, parameter] : parameters_) {
    if (!parameter.grad().defined()) continue;
    const double norm = parameter.grad().norm().item<double>();
    squares += norm * norm;
  }
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm)) return norm;
  const double scale =
      norm > options_.clip_norm ? options_.clip_norm / norm : 1.0;
  for (Group* group : {&decayed_, &plain_}) {
    if (group->parameters.empty()) continue;
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : group->parameters) {
      const at::Tensor& gradient = parameter.grad();
      gradients.push_back(gradient.defined() ? gradient.mul_(scale)
                                             : at::zeros_like(parameter));
    }
    for (const at::Tensor& steps : group->steps) steps.add_(1);
    at::_fused_adamw_(group->parameters, gradients, group->first, group->second,
                      {}, group->steps, learning_rate, options_.beta1,
                      options_.beta2, group->weight_decay, options_.epsilon,
                      /*amsgrad=*/false, /*maximize=*/false);
  }
  return norm;
}

std::vector<std::pair<std::string, at::Tensor>> Adam::State() const {
  return state_;
}

double LearningRateAt(const LearningRateSchedule& schedule, int64_t step) {
  if (step < schedule.warmup_steps) {
    return schedule.peak * static_cast<double>(step + 1) /
           static_cast<double>(schedule.warmup_steps);
  }
  const int64_t decay_steps =
      std::max<int64_t>(schedule.total_steps - schedule.warmup_steps, 1);
  const double progress =
      std::min(1.0, static_cast<double>(step - schedule.warmup_steps) /
                        static_cast<double>(decay_steps));
  const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return schedule.peak *
         (schedule.final_share + (1 - schedule.final_share) * cosine);
}

}  // namespace txl
