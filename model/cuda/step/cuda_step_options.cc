#include "model/cuda/step/cuda_step_options.h"

#include "absl/strings/str_cat.h"
#include "model/checkpoint/weights_check.h"
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
  return CheckFloat32OnCpu(weights, config, "the CUDA step");
}

}  // namespace txl::cuda
