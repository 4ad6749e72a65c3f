#include "model/reference/adaptive_softmax.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <vector>

namespace txl {
namespace {

// The projection is stored [d, e_b] and used as it is.
at::Tensor ToBinWidth(const HeadBin& bin, const at::Tensor& hidden) {
  return bin.proj.defined() ? at::matmul(hidden, bin.proj) : hidden;
}

// Head: the tokens of bin 0, then one column per cluster. [n, n_0 + C]
at::Tensor HeadLogProbs(const Weights& weights, const at::Tensor& hidden) {
  const HeadBin& bin = weights.head[0];
  const at::Tensor x = ToBinWidth(bin, hidden);
  at::Tensor logits = at::linear(x, bin.w, bin.b);
  if (weights.cluster_w.defined()) {
    logits = at::cat(
        {logits, at::linear(x, weights.cluster_w, weights.cluster_b)}, -1);
  }
  return at::log_softmax(logits, -1);
}

// Inside cluster b. [n, n_b]
at::Tensor TailLogProbs(const Weights& weights, int64_t b,
                        const at::Tensor& hidden) {
  const HeadBin& bin = weights.head[b];
  return at::log_softmax(at::linear(ToBinWidth(bin, hidden), bin.w, bin.b), -1);
}

at::Tensor Pick(const at::Tensor& logprobs, const at::Tensor& columns) {
  return logprobs.gather(1, columns.unsqueeze(1)).squeeze(1);
}

}  // namespace

at::Tensor AdaptiveLogProbs(const ModelConfig& config, const Weights& weights,
                            const at::Tensor& hidden) {
  const at::Tensor head = HeadLogProbs(weights, hidden);
  if (config.n_bins() == 1) return head;
  const int64_t head_tokens = config.bin_size(0);
  std::vector<at::Tensor> parts = {head.narrow(1, 0, head_tokens)};
  for (int64_t b = 1; b < config.n_bins(); ++b) {
    parts.push_back(head.narrow(1, head_tokens + b - 1, 1) +
                    TailLogProbs(weights, b, hidden));
  }
  return at::cat(parts, 1);
}

at::Tensor AdaptiveNll(const ModelConfig& config, const Weights& weights,
                       const at::Tensor& hidden, const at::Tensor& targets) {
  const at::Tensor head = HeadLogProbs(weights, hidden);
  if (config.n_bins() == 1) return -Pick(head, targets);
  const int64_t head_tokens = config.bin_size(0);
  at::Tensor column = targets;  // in the head: the token's or its cluster's
  for (int64_t b = 1; b < config.n_bins(); ++b) {
    column = at::where(targets.ge(config.bin_begin(b)),
                       at::full_like(targets, head_tokens + b - 1), column);
  }
  at::Tensor logprob = Pick(head, column);
  for (int64_t b = 1; b < config.n_bins(); ++b) {
    const int64_t begin = config.bin_begin(b);
    const at::Tensor where =
        at::nonzero(
            targets.ge(begin).logical_and(targets.lt(config.bin_begin(b + 1))))
            .squeeze(1);
    if (where.numel() == 0) continue;
    const at::Tensor tail =
        TailLogProbs(weights, b, hidden.index_select(0, where));
    logprob = logprob.index_add(
        0, where, Pick(tail, targets.index_select(0, where) - begin));
  }
  return -logprob;
}

namespace {

at::Tensor EmbedInBin(const EmbeddingBin& bin, const at::Tensor& ids) {
  const at::Tensor rows = at::embedding(bin.w, ids);
  return bin.proj.defined() ? at::linear(rows, bin.proj) : rows;
}

at::Tensor EmbedBeats(const BeatPositions& beats, const Weights& weights,
                      const at::Tensor& tokens, const at::Tensor& ticks) {
  const at::Tensor now = ticks.masked_fill(tokens.eq(beats.restart), 0);
  const auto row = [](const at::Tensor& table, const at::Tensor& index) {
    return at::embedding(table, index, /*padding_idx=*/0);
  };
  return row(weights.beat, now.remainder(beats.bar_ticks)) +
         row(weights.bar,
             now.floor_divide(beats.bar_ticks).remainder(beats.bars));
}

}  // namespace

at::Tensor Embed(const ModelConfig& config, const Weights& weights,
                 const at::Tensor& tokens, const at::Tensor& ticks) {
  at::Tensor out;  // [..., d]
  if (config.n_bins() == 1) {
    out = EmbedInBin(weights.embedding[0], tokens);
  } else {
    const at::Tensor flat = tokens.reshape(-1);
    out = at::zeros({flat.numel(), config.d_model},
                    weights.embedding[0].w.options().requires_grad(false));
    for (int64_t b = 0; b < config.n_bins(); ++b) {
      const int64_t begin = config.bin_begin(b);
      const at::Tensor where =
          at::nonzero(
              flat.ge(begin).logical_and(flat.lt(config.bin_begin(b + 1))))
              .squeeze(1);
      if (where.numel() == 0) continue;
      const at::Tensor ids = flat.index_select(0, where) - begin;
      out = out.index_copy(0, where, EmbedInBin(weights.embedding[b], ids));
    }
    std::vector<int64_t> shape = tokens.sizes().vec();
    shape.push_back(config.d_model);
    out = out.view(shape);
  }
  if (config.scale_embedding) {
    out = out * std::sqrt(static_cast<double>(config.d_model));
  }
  if (!config.beat_positions.has_value()) return out;
  return out + EmbedBeats(*config.beat_positions, weights, tokens, ticks);
}

}  // namespace txl
