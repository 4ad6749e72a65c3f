#include "model/checkpoint/weights_check.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"

namespace txl {

absl::Status CheckCounts(const Weights& weights, const ModelConfig& config) {
  if (static_cast<int64_t>(weights.layers.size()) != config.n_layer ||
      static_cast<int64_t>(weights.embedding.size()) != config.n_bins() ||
      static_cast<int64_t>(weights.head.size()) != config.n_bins()) {
    return absl::InvalidArgumentError("weights do not fit the config");
  }
  return absl::OkStatus();
}

absl::Status CheckFloat32OnCpu(const Weights& weights,
                               const ModelConfig& config,
                               absl::string_view step) {
  TXL_RETURN_IF_ERROR(CheckCounts(weights, config));
  const at::Tensor& like = weights.layers[0].wq;
  if (like.scalar_type() != at::kFloat || !like.device().is_cpu()) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights: ", step, " takes float32 on the CPU"));
  }
  return absl::OkStatus();
}

BinOutputs OutputsOfBin(const ModelConfig& config, const Weights& weights,
                        int64_t bin) {
  BinOutputs outputs = {weights.head[bin].w, weights.head[bin].b};
  if (bin > 0 || config.n_bins() == 1) return outputs;
  outputs.words = at::cat({outputs.words, weights.cluster_w});
  const auto or_zeros = [](const at::Tensor& bias, int64_t count) {
    return bias.defined() ? bias : at::zeros({count});
  };
  outputs.bias = at::cat({or_zeros(outputs.bias, config.bin_size(0)),
                          or_zeros(weights.cluster_b, config.n_bins() - 1)});
  return outputs;
}

}  // namespace txl
