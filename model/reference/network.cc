#include "model/reference/network.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "model/reference/adaptive_embedding.h"
#include "model/reference/adaptive_softmax.h"
#include "model/reference/attention.h"
#include "model/reference/decoder_layer.h"

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
  at::Tensor h = drop(Embed(config_, weights_, tokens));
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

}  // namespace txl
