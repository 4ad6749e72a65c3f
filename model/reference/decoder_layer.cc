#include "model/reference/decoder_layer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>

namespace txl {
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
