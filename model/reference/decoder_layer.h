#pragma once

// One layer: attention and feed-forward, each with its residual connection and
// LayerNorm after (post) or before (pre) it.

#include <ATen/core/Tensor.h>

#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"
#include "model/reference/attention.h"
#include "model/reference/dropout.h"

namespace txl {

// h [batch, q, d], memory [batch, m, d] (inputs of this layer, before any
// LayerNorm) -> [batch, q, d].
at::Tensor DecoderLayer(const ModelConfig& config, const LayerWeights& layer,
                        const SegmentContext& context, const at::Tensor& h,
                        const at::Tensor& memory,
                        const ForwardOptions& options);

}  // namespace txl
