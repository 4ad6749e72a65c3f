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

}  // namespace txl
