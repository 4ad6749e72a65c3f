#pragma once

// What of the model directory, the engine and the flags makes a server guess
// tokens ahead.

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/checkpoint/model_directory.h"
#include "server/engine/runner_options.h"
#include "server/engine/step_runner.h"
#include "server/scheduler/scheduler_options.h"

namespace txl {

// The model directory of --draft, nothing for an empty path. `speculate`: of
// the flag. Errors: as OpenModelDirectory; InvalidArgument where nothing is
// guessed, and, naming both folders, where it has not the vocabulary of
// `model`.
absl::StatusOr<std::optional<ModelDirectory>> OpenDraft(
    const std::string& path, const std::string& speculate,
    const ModelDirectory& model);

// How it runs beside a model that runs so: on the CPU's native step.
StepRunnerOptions DraftOptions(StepRunnerOptions options);

// Its runner, with as many slots as the served model's `info` says, beside
// `options` of that; null without a draft or where the model's runner does not
// verify guesses. Errors as LoadStepRunner.
absl::StatusOr<std::shared_ptr<StepRunner>> LoadDraft(
    const std::optional<ModelDirectory>& draft, const RunnerInfo& info,
    const StepRunnerOptions& options);

// `speculate`: of the flag. Off, or where the runner does not verify guesses,
// speculate_tokens becomes 0; else the directory's table of n-grams is read
// where there is one. A line of the log says which, and whether there is a
// draft. Errors: as NgramTable::Read, but a file that is not there is none.
absl::Status SetUpSpeculation(const std::string& speculate,
                              const ModelDirectory& model,
                              const RunnerInfo& info,
                              SchedulerOptions* options);

}  // namespace txl
