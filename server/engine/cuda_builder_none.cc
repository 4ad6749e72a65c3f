#include "server/engine/cuda_builder.h"

namespace txl {

int NativeCudaDevices() { return 0; }

bool SamplesOnCudaDevice(const ModelConfig&, const StepRunnerOptions&) {
  return false;
}

absl::StatusOr<BuiltStep> BuildCudaStep(const ModelConfig&, const Weights&,
                                        const std::string&,
                                        const StepRunnerOptions&, int) {
  return absl::FailedPreconditionError(
      "step: this program was built without the native CUDA step (TXL_CUDA)");
}

}  // namespace txl
