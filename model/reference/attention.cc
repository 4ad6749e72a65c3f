#include "model/reference/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <limits>

#include "model/reference/relative_position.h"

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

}  // namespace txl
