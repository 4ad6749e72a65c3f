#pragma once

// Adaptive input embedding: frequent tokens in wide rows, rare ones in narrow
// rows that a projection brings to d_model.

#include <ATen/core/Tensor.h>

#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"

namespace txl {

// tokens [...] int64 in [0, V) -> [..., d], times sqrt(d) when the model
// scales its embedding.
at::Tensor Embed(const ModelConfig& config, const Weights& weights,
                 const at::Tensor& tokens);

}  // namespace txl
