#pragma once

// Multi-head attention with relative positions over [memory ; segment].

#include <ATen/core/Tensor.h>

#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"
#include "model/reference/dropout.h"

namespace txl {

// What all layers of one forward pass share.
struct SegmentContext {
  // R for distances K, K-1, ..., 0: [K + 1, d]. Undefined for tables.
  at::Tensor encoding;
  at::Tensor hidden_keys;  // [q, K] bool: true where a query must not look
};

// K = m + q keys.
SegmentContext MakeSegmentContext(const ModelConfig& config,
                                  const Weights& weights, int64_t m, int64_t q);

// x [batch, K, d]: memory and segment (normalised already for pre-LN models);
// the queries are its last q rows. Returns Wo concat_n(...) (+ bo):
// [batch, q, d].
at::Tensor RelativeAttention(const ModelConfig& config,
                             const LayerWeights& layer,
                             const SegmentContext& context, const at::Tensor& x,
                             const ForwardOptions& options);

}  // namespace txl
