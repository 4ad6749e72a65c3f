#include "model/reference/network.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "model/reference/adaptive_softmax.h"
#include "model/reference/attention.h"

namespace txl {
namespace {

// The last `mem_len` rows of [memory ; input]. Detached: the gradient of a
// segment stops at its border (the paper's SG).
at::Tensor NextMemory(const at::Tensor& memory, const at::Tensor& input,
                      int64_t mem_len) {
  const at::Tensor rows = input.detach();
  const int64_t q = rows.size(1);
  if (q >= mem_len) return rows.narrow(1, q - mem_len, mem_len);
  const int64_t kept = std::min(memory.size(1), mem_len - q);
  return at::cat({memory.narrow(1, memory.size(1) - kept, kept), rows}, 1);
}

}  // namespace

ReferenceNetwork::ReferenceNetwork(ModelConfig config, Weights weights)
    : config_(std::move(config)), weights_(std::move(weights)) {}

SegmentMemory ReferenceNetwork::InitialMemory(int64_t batch) const {
  const int64_t rows =
      config_.mem_init == MemoryInit::kZeros ? config_.mem_len : 0;
  SegmentMemory memory;
  for (int64_t l = 0; l < config_.n_layer; ++l) {
    memory.layers.push_back(
        at::zeros({batch, rows, config_.d_model},
                  weights_.embedding.front().w.options().requires_grad(false)));
  }
  return memory;
}

at::Tensor ReferenceNetwork::Forward(const at::Tensor& tokens,
                                     SegmentMemory& memory,
                                     const ForwardOptions& options) const {
  const auto drop = [&](const at::Tensor& x) {
    return options.dropout > 0
               ? options.dropout_stream->Apply(x, options.dropout)
               : x;
  };
  const int64_t m = memory.layers.front().size(1);
  SegmentContext context =
      MakeSegmentContext(config_, weights_, m, tokens.size(1));
  if (context.encoding.defined()) context.encoding = drop(context.encoding);
  at::Tensor h = drop(Embed(config_, weights_, tokens, options.ticks));
  for (int64_t l = 0; l < config_.n_layer; ++l) {
    at::Tensor& rows = memory.layers[l];
    const at::Tensor input = h;
    h = DecoderLayer(config_, weights_.layers[l], context, input, rows,
                     options);
    rows = NextMemory(rows, input, config_.mem_len);
  }
  if (config_.final_norm) {
    h = at::layer_norm(h, {config_.d_model}, weights_.final_g, weights_.final_b,
                       config_.ln_eps);
  }
  return drop(h);
}

at::Tensor ReferenceNetwork::LogProbs(const at::Tensor& hidden) const {
  const at::Tensor flat = hidden.reshape({-1, config_.d_model});
  std::vector<int64_t> shape = hidden.sizes().vec();
  shape.back() = config_.vocab_size;
  return AdaptiveLogProbs(config_, weights_, flat).view(shape);
}

at::Tensor ReferenceNetwork::Nll(const at::Tensor& hidden,
                                 const at::Tensor& targets) const {
  return AdaptiveNll(config_, weights_, hidden, targets);
}

namespace {

at::Tensor Activate(Activation activation, const at::Tensor& x) {
  switch (activation) {
    case Activation::kRelu:
      return at::relu(x);
    case Activation::kGeluTanh:
      return at::gelu(x, "tanh");
    case Activation::kNone:
      break;
  }
  return x;
}

at::Tensor Norm(const ModelConfig& config, const at::Tensor& x,
                const at::Tensor& g, const at::Tensor& b) {
  return at::layer_norm(x, {config.d_model}, g, b, config.ln_eps);
}

at::Tensor Drop(const at::Tensor& x, const ForwardOptions& options) {
  if (options.dropout <= 0) return x;
  return options.dropout_stream->Apply(x, options.dropout);
}

at::Tensor FeedForward(const ModelConfig& config, const LayerWeights& layer,
                       const at::Tensor& x, const ForwardOptions& options) {
  const at::Tensor inner = Drop(
      Activate(config.act, at::linear(x, layer.ff_w1, layer.ff_b1)), options);
  return Drop(
      Activate(config.ff_out_act, at::linear(inner, layer.ff_w2, layer.ff_b2)),
      options);
}

}  // namespace

at::Tensor DecoderLayer(const ModelConfig& config, const LayerWeights& layer,
                        const SegmentContext& context, const at::Tensor& h,
                        const at::Tensor& memory,
                        const ForwardOptions& options) {
  const bool pre = config.norm == NormPlacement::kPre;
  at::Tensor x = memory.size(1) == 0 ? h : at::cat({memory, h}, 1);
  if (pre) x = Norm(config, x, layer.ln1_g, layer.ln1_b);
  at::Tensor y =
      h + Drop(RelativeAttention(config, layer, context, x, options), options);
  if (!pre) y = Norm(config, y, layer.ln1_g, layer.ln1_b);

  const at::Tensor ff_in = pre ? Norm(config, y, layer.ln2_g, layer.ln2_b) : y;
  y = y + FeedForward(config, layer, ff_in, options);
  return pre ? y : Norm(config, y, layer.ln2_g, layer.ln2_b);
}

}  // namespace txl
