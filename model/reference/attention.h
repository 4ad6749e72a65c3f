#pragma once

// Multi-head attention with relative positions over [memory ; segment].

#include <ATen/core/Tensor.h>

#include <cstdint>

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

// The three position kinds and the relative shift (appendix B of
// arXiv:1901.02860).

// R for distances 0..count-1, one row each, clamp applied: [count, d].
// Sinusoids only. Frequencies are the checkpoint's own when it stores them.
at::Tensor PositionEncoding(const ModelConfig& config, const Weights& weights,
                            int64_t count);

// Rows of a learned table for distances 0..count-1: clamp applied, distances
// beyond the table use its farthest row. table [rows, ...] -> [count, ...].
at::Tensor TableRows(const ModelConfig& config, const at::Tensor& table,
                     int64_t count);

// x[..., i, c] holds query i against distance K - c (c = 0..K, K keys);
// returns y[..., i, j] for distance (K - q) + i - j where that is >= 0.
// Column 0 (distance K) is never read back in the valid part: with it the shift
// is a view. Entries of keys after the query are unspecified (but entries of
// x). x: [..., q, K + 1], contiguous in its last two dimensions; y: [..., q,
// K].
at::Tensor RelativeShift(const at::Tensor& x);

}  // namespace txl
