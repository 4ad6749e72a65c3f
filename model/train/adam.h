#pragma once

// Adam with decoupled weight decay (Kingma and Ba 2015; Loshchilov and Hutter
// 2019) and clipping of the gradient's norm.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace txl {

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double epsilon = 1e-8;
  // Matrices decay, biases, norms and position biases do not.
  double weight_decay = 0.0;
  // Largest Euclidean norm of all gradients together, before the update.
  double clip_norm = 0.25;
};

// Not thread-safe.
class Adam {
 public:
  // Parameters are leaves that require grad.
  Adam(std::vector<std::pair<std::string, at::Tensor>> parameters,
       AdamOptions options);

  void ZeroGrad();
  // One update from the parameters' gradients, which it clips in place.
  // Returns the norm before clipping; a norm that is not finite changes
  // nothing.
  double Step(double learning_rate);

  // Moments and step counts under names that a checkpoint keeps. The handles
  // alias the state: copying into them restores it.
  std::vector<std::pair<std::string, at::Tensor>> State() const;

 private:
  struct Group {
    double weight_decay = 0;
    std::vector<at::Tensor> parameters, first, second, steps;
  };

  AdamOptions options_;
  std::vector<std::pair<std::string, at::Tensor>> parameters_;
  std::vector<std::pair<std::string, at::Tensor>> state_;
  Group decayed_, plain_;
};

// Linear warm-up, then cosine decay (Loshchilov and Hutter 2017).

struct LearningRateSchedule {
  double peak = 1e-3;          // > 0
  double final_share = 0;      // of peak, reached at the last step; [0, 1]
  int64_t warmup_steps = 200;  // >= 0
  int64_t total_steps = 4000;  // > 0
};

// For step 0 <= step < total_steps: rises to the peak within warmup_steps,
// falls to peak * final_share at total_steps.
double LearningRateAt(const LearningRateSchedule& schedule, int64_t step);

}  // namespace txl
