#include "model/reference/adaptive_embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/zeros.h>

#include <cmath>

namespace txl {
namespace {

at::Tensor EmbedInBin(const EmbeddingBin& bin, const at::Tensor& ids) {
  const at::Tensor rows = at::embedding(bin.w, ids);
  return bin.proj.defined() ? at::linear(rows, bin.proj) : rows;
}

}  // namespace

at::Tensor Embed(const ModelConfig& config, const Weights& weights,
                 const at::Tensor& tokens) {
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
  if (!config.scale_embedding) return out;
  return out * std::sqrt(static_cast<double>(config.d_model));
}

}  // namespace txl
