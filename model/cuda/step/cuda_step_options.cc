#include "model/cuda/step/cuda_step_options.h"

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/weights.h"
#include "model/cuda/device/runtime.h"
#include "model/step/model_step.h"

namespace txl::cuda {

absl::Status CheckOptions(const ModelConfig& config, const Weights& weights,
                          const CudaStepOptions& options) {
  if (options.device < 0 || options.device >= DeviceCount()) {
    return absl::InvalidArgumentError(
        absl::StrCat("device: there is none with index ", options.device));
  }
  TXL_RETURN_IF_ERROR(CheckSlots(options.slots, options.spare_rows));
  if (options.max_rows < 1 || options.max_rows > kMostCudaRows) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_rows: must be in [1, ", kMostCudaRows, "]"));
  }
  for (const NumberFormat format : {options.weights, options.memory}) {
    if (NumberBits(format) >= 16) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "formats: ", FormatName(format), " is not a format of this device"));
  }
  return CheckFloat32OnCpu(weights, config, "the CUDA step");
}

}  // namespace txl::cuda
