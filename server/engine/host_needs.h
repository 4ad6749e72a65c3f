#pragma once

// What a model takes of the host's memory, before anything is loaded.

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "server/engine/runner_options.h"

namespace txl {

struct ModelConfig;

// Bytes, 0 for what a device keeps.
struct HostNeeds {
  int64_t weights = 0;
  int64_t bytes_per_slot = 0;
  int64_t most_slots = 1;  // that are of use (StepRunnerOptions::slots)
  int64_t step = 0;        // rows of a step, their logits among them
};

// Errors as LoadStepRunner, for what the options say.
absl::StatusOr<HostNeeds> HostNeedsOf(const ModelConfig& config,
                                      const StepRunnerOptions& options);

// Where the options want the step to run.

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
