#pragma once

// Where the options want the step to run.

#include <c10/core/Device.h>

#include <optional>

#include "absl/status/statusor.h"
#include "server/engine/runner_options.h"

namespace txl {

struct StepPlace {
  c10::Device weights = c10::kCPU;  // where they are loaded to
  std::optional<int> native_cuda;   // index of the native CUDA step's device
};

// `device` and `step` of the options with the devices that are there. The
// native CUDA step is meant by step "native" or "auto" on a CUDA device, and on
// device "auto" where it sees one. Errors as ResolveDevice.
absl::StatusOr<StepPlace> ChooseStepPlace(const StepRunnerOptions& options);
// What ChooseStepPlace says where the native CUDA step sees `devices`.
absl::StatusOr<StepPlace> ChooseStepPlaceOf(const StepRunnerOptions& options,
                                            int devices);

}  // namespace txl
