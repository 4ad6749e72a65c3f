#pragma once

// Dynamic evaluation (Krause et al. 2019, arXiv:1904.08378): the weights learn
// from each segment after it was predicted, so that a text's own turns of
// phrase become likelier as it goes on. The steps are those of the authors'
// program (benkrause/dynamiceval-transformer, tf/dynamic_eval_opt.py), with the
// gradient g of a segment's mean loss, without clipping:
//   sgd: w -= lr g
//   rms: w -= lr g / (r + epsilon) + decay r (w - w0), r = sqrt(sum of g^2)
// over the segments of a text of statistics, gathered at the weights w0. There,
// as here, embedding tables (also where the head shares them) take sgd's step
// in both, since TensorFlow's gradient of a table is sparse.
// One difference: that program restores its checkpoint after it has gathered,
// and Adam's moments, saved under the same names, take the place of r and
// w - w0. A converted model has no moments, so what was gathered is used.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "model/reference/network.h"
#include "model/train/evaluation.h"

namespace txl {

enum class DynamicSteps { kSgd, kRms };

// Defaults as the authors' program has them; > 0 but for decay, >= 0.
struct DynamicOptions {
  DynamicSteps steps = DynamicSteps::kSgd;
  double learning_rate = 6e-5;
  double decay = 1e-3;    // rms only
  double epsilon = 1e-4;  // rms only
};

// Not thread-safe.
class DynamicEvaluation {
 public:
  // Changes the tensors of `weights`.
  DynamicEvaluation(const ModelConfig& config, Weights weights,
                    const DynamicOptions& options);

  // Adds the squared gradients of a text's segments; for rms, before Run. The
  // weights stay as they are.
  void Gather(absl::Span<const int64_t> ids, EvaluationOptions options);

  // Evaluates each segment, then learns from it.
  Evaluation Run(absl::Span<const int64_t> ids, EvaluationOptions options);

 private:
  struct Parameter {
    at::Tensor value;
    bool is_table = false;
    at::Tensor squares, moved;  // sum of g^2; w - w0
  };

  void Step();

  DynamicOptions options_;
  std::vector<Parameter> parameters_;
  ReferenceNetwork network_;
};

}  // namespace txl
