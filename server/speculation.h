#pragma once

// What of the model directory, the engine and the flags makes a server guess
// tokens ahead.

#include <string>

#include "absl/status/status.h"
#include "model/checkpoint/model_directory.h"
#include "server/engine/step_runner.h"
#include "server/scheduler/scheduler_options.h"

namespace txl {

// `speculate`: of the flag. Off, or where the runner does not verify guesses,
// speculate_tokens becomes 0; else the directory's table of n-grams is read
// where there is one. A line of the log says which. Errors: as
// NgramTable::Read, but a file that is not there is none.
absl::Status SetUpSpeculation(const std::string& speculate,
                              const ModelDirectory& model,
                              const RunnerInfo& info,
                              SchedulerOptions* options);

}  // namespace txl
