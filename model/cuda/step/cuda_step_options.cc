#include "model/cuda/step/cuda_step_options.h"

#include <ATen/core/Tensor.h>

#include "absl/strings/str_cat.h"
#include "model/checkpoint/weights.h"
#include "model/cuda/device/runtime.h"

namespace txl::cuda {

absl::Status CheckOptions(const ModelConfig& config, const Weights& weights,
                          const CudaStepOptions& options) {
  if (options.device < 0 || options.device >= DeviceCount()) {
    return absl::InvalidArgumentError(
        absl::StrCat("device: there is none with index ", options.device));
  }
  if (options.slots < 1) {
    return absl::InvalidArgumentError("slots: must be at least 1");
  }
  if (options.spare_rows < 8) {
    return absl::InvalidArgumentError("spare_rows: must be at least 8");
  }
  if (options.max_rows < 1 || options.max_rows > kMostCudaRows) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_rows: must be in [1, ", kMostCudaRows, "]"));
  }
  if (options.weights == NumberFormat::kInt8 ||
      options.memory == NumberFormat::kInt8) {
    return absl::InvalidArgumentError("formats: int8 is none of this device's");
  }
  if (static_cast<int64_t>(weights.layers.size()) != config.n_layer ||
      static_cast<int64_t>(weights.head.size()) != config.n_bins()) {
    return absl::InvalidArgumentError("weights do not fit the config");
  }
  const at::Tensor& like = weights.layers[0].wq;
  if (like.scalar_type() != at::kFloat || !like.device().is_cpu()) {
    return absl::InvalidArgumentError(
        "weights: the CUDA step takes float32 on the CPU");
  }
  return absl::OkStatus();
}

}  // namespace txl::cuda
