#include "server/engine/cuda_builder.h"
#include "server/engine/device_name.h"

namespace txl {

int NativeCudaDevices() { return 0; }

bool SamplesOnCudaDevice(const ModelConfig&, const StepRunnerOptions&) {
  return false;
}

absl::Status CheckCudaOptions(const ModelConfig&, const StepRunnerOptions&) {
  return absl::FailedPreconditionError(
      "step: this program was built without the native CUDA step (TXL_CUDA)");
}

absl::StatusOr<BuiltStep> BuildCudaStep(const ModelConfig& config,
                                        const Weights&, const std::string&,
                                        const StepRunnerOptions& options, int) {
  return CheckCudaOptions(config, options);
}

std::optional<int64_t> FreeDeviceBytes(int) { return std::nullopt; }

}  // namespace txl
