#pragma once

// From a model and options to the runner that serves it: on a step that samples
// on its device where there is one for the model (cuda_builder.h), else on a
// ModelStep. This header knows no tensor type.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/base/self_test_report.h"
#include "server/engine/runner_options.h"
#include "server/engine/step_runner.h"

namespace txl {

struct ModelConfig;
struct ModelDirectory;
struct Weights;

// Loads the directory's weights as float32 onto the device, and meanwhile
// computes the directory's fingerprint where it is empty. With step "auto" a
// native step serves when the self-test (sound_step.h) is content with it; else
// a safer one does, which the log and `report`, where there is one, say: on the
// CPU another instruction set and then LibTorch's step, on a CUDA device
// LibTorch's. Errors: InvalidArgument or FailedPrecondition naming the option
// or file, the latter also where no step passes; ResourceExhausted when memory
// runs out or not even one slot fits slot_bytes.
absl::StatusOr<std::unique_ptr<StepRunner>> LoadStepRunner(
    ModelDirectory& directory, const StepRunnerOptions& options,
    SelfTestReport* report = nullptr);

// A runner of weights in memory: on the device and in the dtype that they have,
// unless the options want the native CUDA step (host_needs.h), which takes
// float32 from the CPU, and to which there is no alternative here.
absl::StatusOr<std::unique_ptr<StepRunner>> CreateStepRunner(
    const ModelConfig& config, const Weights& weights,
    const std::string& fingerprint, const StepRunnerOptions& options,
    SelfTestReport* report = nullptr);

}  // namespace txl
