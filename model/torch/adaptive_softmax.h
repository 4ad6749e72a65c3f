#pragma once

// Adaptive embedding and log-softmax (Grave et al. 2017, arXiv:1609.04309) for
// rows of a serving batch.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/types/span.h"
#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"

namespace txl {

// Tokens, each in [0, V), and the ticks of each if the model has beat
// positions.
struct TokenRows {
  absl::Span<const int32_t> ids;
  absl::Span<const int32_t> ticks;  // as of StepSegment
};

// Embeddings of `tokens` followed by rows that do not count up to a multiple of
// row_tile: [rows, d], scaled as the config says.
at::Tensor EmbedTokens(const ModelConfig& config, const Weights& weights,
                       const TokenRows& tokens, int64_t row_tile);

// Log-distribution of the next token, all V ids: hidden [n, d] -> [n, V].
// log P(id of bin b > 0) = head log P(cluster b) + tail log P(id | bin b).
at::Tensor FullLogProbs(const ModelConfig& config, const Weights& weights,
                        const at::Tensor& hidden, int64_t row_tile);

}  // namespace txl
