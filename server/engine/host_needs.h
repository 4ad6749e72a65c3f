#pragma once

// What a model takes of the host's memory, before anything is loaded.

#include <cstdint>

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

}  // namespace txl
