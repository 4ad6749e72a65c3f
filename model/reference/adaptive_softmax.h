#pragma once

// Adaptive softmax (Grave et al. 2016, arXiv:1609.04309): a head over the
// frequent tokens and one column per cluster of rarer ones, a softmax of its
// own in every cluster. Clusters in forward order: column n_0 + b - 1 is bin b.

#include <ATen/core/Tensor.h>

#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"

namespace txl {

// hidden [n, d] -> log-distribution over the vocabulary [n, V].
at::Tensor AdaptiveLogProbs(const ModelConfig& config, const Weights& weights,
                            const at::Tensor& hidden);

// hidden [n, d], targets [n] int64 -> -log p(target) [n], evaluating only the
// clusters in which a target lies.
at::Tensor AdaptiveNll(const ModelConfig& config, const Weights& weights,
                       const at::Tensor& hidden, const at::Tensor& targets);

// Adaptive input embedding: frequent tokens in wide rows, rare ones in narrow
// rows that a projection brings to d_model.

// tokens [...] int64 in [0, V) -> [..., d], times sqrt(d) when the model
// scales its embedding. To that a model with beat positions adds the rows of
// its two tables that `ticks` [...] int64 name (BeatCounter::ticks before each
// token); undefined: the model has none. Row 0 of a table is not trained, as in
// musicautobot (padding_idx).
at::Tensor Embed(const ModelConfig& config, const Weights& weights,
                 const at::Tensor& tokens, const at::Tensor& ticks = {});

}  // namespace txl
