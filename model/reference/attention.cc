#include "model/reference/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace txl {
namespace {

// [batch, n, H*D] -> [H, batch, n, D], contiguous: with the heads outermost
// one product per head serves all sequences with the shared Wr R.
at::Tensor SplitHeads(const ModelConfig& config, const at::Tensor& x) {
  return x.view({x.size(0), x.size(1), config.n_head, config.d_head})
      .permute({2, 0, 1, 3})
      .contiguous();
}

// [H, D] -> [H, 1, 1, D]
at::Tensor PerHead(const at::Tensor& bias) {
  return bias.unsqueeze(1).unsqueeze(1);
}

// Score of the distance alone, sinusoids: (Q + v) (Wr R)^T, then shifted.
// query [H, batch, q, D], scaled -> [H, batch, q, K]
at::Tensor SinusoidScore(const ModelConfig& config, const LayerWeights& layer,
                         const SegmentContext& context,
                         const at::Tensor& query) {
  const int64_t batch = query.size(1), q = query.size(2);
  const at::Tensor r =  // [H, K + 1, D]
      at::linear(context.encoding, layer.wr, layer.br)
          .view({-1, config.n_head, config.d_head})
          .transpose(0, 1);
  const at::Tensor score =
      at::bmm(query.reshape({config.n_head, batch * q, config.d_head}),
              r.transpose(1, 2));
  return RelativeShift(score.view({config.n_head, batch, q, r.size(1)}));
}

// The score of learned tables: Q T[distance] + S[distance].
at::Tensor TableScore(const ModelConfig& config, const LayerWeights& layer,
                      double scale, const at::Tensor& query, int64_t keys) {
  const int64_t batch = query.size(1), q = query.size(2);
  const at::Tensor t =  // [H, D, K + 1], distances descending
      TableRows(config, layer.rel_t, keys + 1).flip(0).permute({1, 2, 0});
  const at::Tensor s =  // [H, 1, K + 1]
      TableRows(config, layer.rel_s, keys + 1).flip(0).t().unsqueeze(1) * scale;
  const at::Tensor score =
      at::bmm(query.reshape({config.n_head, batch * q, config.d_head}), t) + s;
  return RelativeShift(score.view({config.n_head, batch, q, keys + 1}));
}

}  // namespace

SegmentContext MakeSegmentContext(const ModelConfig& config,
                                  const Weights& weights, int64_t m,
                                  int64_t q) {
  const at::TensorOptions options =
      weights.embedding.front().w.options().requires_grad(false);
  SegmentContext context;
  if (config.pos != PositionKind::kTable) {
    context.encoding = PositionEncoding(config, weights, m + q + 1).flip(0);
  }
  const at::TensorOptions index = options.dtype(at::kLong);
  const at::Tensor distance =
      at::arange(m, m + q, index).unsqueeze(1) - at::arange(m + q, index);
  context.hidden_keys = distance.lt(0);
  if (config.window.has_value()) {
    context.hidden_keys =
        context.hidden_keys.logical_or(distance.ge(*config.window));
  }
  return context;
}

at::Tensor RelativeAttention(const ModelConfig& config,
                             const LayerWeights& layer,
                             const SegmentContext& context, const at::Tensor& x,
                             const ForwardOptions& options) {
  const int64_t batch = x.size(0), keys = x.size(1);
  const int64_t q = context.hidden_keys.size(0);
  const int64_t heads = config.n_head, width = config.d_head;
  const double scale = 1 / std::sqrt(static_cast<double>(width));

  // The scale goes into the queries: they are fewer than the scores.
  const at::Tensor query = SplitHeads(
      config, at::linear(x.narrow(1, keys - q, q), layer.wq, layer.bq));
  const at::Tensor key = SplitHeads(config, at::linear(x, layer.wk, layer.bk));
  const at::Tensor value =
      SplitHeads(config, at::linear(x, layer.wv, layer.bv));
  const at::Tensor by_content = (query + PerHead(layer.u)) * scale;
  const at::Tensor distance_score =
      config.pos == PositionKind::kTable
          ? TableScore(config, layer, scale, query * scale, keys)
          : SinusoidScore(config, layer, context,
                          (query + PerHead(layer.v)) * scale);

  at::Tensor score = at::baddbmm(  // [H * batch, q, K]
      distance_score.reshape({heads * batch, q, keys}),
      by_content.view({heads * batch, q, width}),
      key.view({heads * batch, keys, width}).transpose(1, 2));
  score.masked_fill_(context.hidden_keys,
                     -std::numeric_limits<double>::infinity());
  at::Tensor probability = at::softmax(score, -1);
  if (options.attention_dropout > 0) {
    probability =
        options.dropout_stream->Apply(probability, options.attention_dropout);
  }
  const at::Tensor mixed =  // [batch, q, H * D]
      at::bmm(probability, value.view({heads * batch, keys, width}))
          .view({heads, batch, q, width})
          .permute({1, 2, 0, 3})
          .reshape({batch, q, heads * width});
  return at::linear(mixed, layer.wo, layer.bo);
}

namespace {

// f_i = base^(-2i/d) in the run's own precision, as the public code computes
// it: the exponent first, then the power, then the reciprocal.
at::Tensor ComputedFrequencies(const ModelConfig& config, int64_t count,
                               double exponent_step,
                               const at::TensorOptions& options) {
  const at::Tensor exponent = at::arange(count, options) * exponent_step /
                              static_cast<double>(config.d_model);
  return at::reciprocal(at::pow(at::Scalar(config.pos_base), exponent));
}

at::Tensor Distances(const ModelConfig& config, int64_t count,
                     const at::TensorOptions& options) {
  at::Tensor distance = at::arange(count, options);
  if (config.clamp_len.has_value()) {
    distance = distance.clamp_max(static_cast<double>(*config.clamp_len));
  }
  return distance;
}

}  // namespace

at::Tensor PositionEncoding(const ModelConfig& config, const Weights& weights,
                            int64_t count) {
  const at::TensorOptions options =
      weights.embedding.front().w.options().requires_grad(false);
  const at::Tensor distance = Distances(config, count, options).unsqueeze(1);
  if (config.pos == PositionKind::kSinInterleavedRaw) {
    const at::Tensor angle =
        distance * ComputedFrequencies(config, config.d_model, 2.0, options);
    const at::Tensor even =
        at::arange(config.d_model, options.dtype(at::kLong)).remainder(2).eq(0);
    return at::where(even, at::sin(angle), at::cos(angle));
  }
  const at::Tensor frequency =
      weights.inv_freq.defined()
          ? weights.inv_freq
          : ComputedFrequencies(config, config.d_model / 2, 2.0, options);
  const at::Tensor angle = distance * frequency;
  return at::cat({at::sin(angle), at::cos(angle)}, 1);
}

at::Tensor TableRows(const ModelConfig& config, const at::Tensor& table,
                     int64_t count) {
  // A clamp of c keeps the rows 0..c-1: one fewer than sinusoids have.
  int64_t farthest = table.size(0) - 1;
  if (config.clamp_len.has_value()) {
    farthest = std::min(farthest, std::max<int64_t>(*config.clamp_len - 1, 0));
  }
  const at::Tensor index =
      at::arange(count, table.options().dtype(at::kLong).requires_grad(false))
          .clamp_max(farthest);
  return table.index_select(0, index);
}

at::Tensor RelativeShift(const at::Tensor& x) {
  const int64_t q = x.size(-2);
  const int64_t keys = x.size(-1) - 1;
  // Row i of y starts at column q - i of row i of x: in the flat order that is
  // q + i * keys, so the rows of y lie back to back.
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = keys;
  return x.flatten(-2).narrow(-1, q, q * keys).unflatten(-1, {q, keys});
}

}  // namespace txl
