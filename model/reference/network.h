#pragma once

// The paper's segment forward (Dai et al. 2019, arXiv:1901.02860, section 3),
// readable beside the paper. The oracle for every faster step, and what the
// trainer differentiates.
//
// For one segment of q tokens and a memory of m rows per layer:
//   c = [memory ; h], K = m + q keys; distance of key j to query i: m + i - j
//   score = D^-1/2 [ (Q+u) K^T + RelativeShift((Q+v) (Wr R)^T) ]  (sinusoids)
//   score = D^-1/2 [ (Q+u) K^T + Q T[distance] + S[distance] ]     (tables)
// softmax over keys with 0 <= distance < window.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"
#include "model/reference/attention.h"
#include "model/reference/dropout.h"

namespace txl {

// One sequence batch's memory: the input of each layer at the last m positions,
// oldest first, before any LayerNorm. layers[l]: [batch, m, d].
struct SegmentMemory {
  std::vector<at::Tensor> layers;
};

// Thread-safe: const after construction; state is an argument.
class ReferenceNetwork {
 public:
  // `weights` may require grad; dtype and device are theirs.
  ReferenceNetwork(ModelConfig config, Weights weights);

  // No rows, or mem_len zero rows, as mem_init says.
  SegmentMemory InitialMemory(int64_t batch) const;

  // Hidden states of the last layer (after final_norm).
  // tokens [batch, q] int64; replaces `memory` by the last mem_len rows of
  // [memory ; layer input], detached. options.ticks as of Embed. Returns
  // [batch, q, d].
  at::Tensor Forward(const at::Tensor& tokens, SegmentMemory& memory,
                     const ForwardOptions& options = {}) const;

  // Log-distribution of the next token. hidden [..., d] -> [..., V].
  at::Tensor LogProbs(const at::Tensor& hidden) const;

  // Negative log-likelihood of targets, evaluating only the clusters that
  // occur. hidden [n, d], targets [n] int64 -> [n].
  at::Tensor Nll(const at::Tensor& hidden, const at::Tensor& targets) const;

  const ModelConfig& config() const { return config_; }
  const Weights& weights() const { return weights_; }

 private:
  ModelConfig config_;
  Weights weights_;
};

// One layer: attention and feed-forward, each with its residual connection and
// LayerNorm after (post) or before (pre) it.

// h [batch, q, d], memory [batch, m, d] (inputs of this layer, before any
// LayerNorm) -> [batch, q, d].
at::Tensor DecoderLayer(const ModelConfig& config, const LayerWeights& layer,
                        const SegmentContext& context, const at::Tensor& h,
                        const at::Tensor& memory,
                        const ForwardOptions& options);

}  // namespace txl
