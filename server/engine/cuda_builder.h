#pragma once

// The native CUDA step, where this program was built with it (TXL_CUDA);
// cuda_builder.cc is then linked, else cuda_builder_none.cc.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "server/engine/step_builder.h"

namespace txl {

// CUDA devices that the native step can use; 0 without it.
int NativeCudaDevices();

// Memory of a device that is left to itself where the slots take what there is
// (StepRunnerOptions::slot_bytes).
inline constexpr int64_t kDeviceReserveBytes = int64_t{1} << 30;

// Whether the device samples the model's tokens itself: when it can do so for
// every request that the options let through. LibTorch's step serves the rest.
// The device knows every filter of the API; this looks at numbers only.
bool SamplesOnCudaDevice(const ModelConfig& config,
                         const StepRunnerOptions& options);

// InvalidArgument naming the option that the step does not take, or where not
// SamplesOnCudaDevice; FailedPrecondition without a native step.
absl::Status CheckCudaOptions(const ModelConfig& config,
                              const StepRunnerOptions& options);

// The step on device `index`, in absorbed form. `weights`: float32 on the CPU.
// Errors: as CheckCudaOptions, and InvalidArgument for a format;
// ResourceExhausted when not even one slot fits. Throws as
// CreateCudaSamplingStep.
absl::StatusOr<BuiltStep> BuildCudaStep(const ModelConfig& config,
                                        const Weights& weights,
                                        const std::string& fingerprint,
                                        const StepRunnerOptions& options,
                                        int index);

}  // namespace txl
