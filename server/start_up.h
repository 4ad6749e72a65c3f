#pragma once

// What a server does between its flags and its first call: it finds the model,
// chooses its threads, decides whether to guess tokens ahead, and runs one
// turn.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/checkpoint/model_directory.h"
#include "model/text/ngram_table.h"
#include "server/engine/step_runner.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/scheduler_options.h"
#include "server/session/session_store.h"

namespace txl {

// Models that are installed together with the program, and served by name.
// Where they lie: ../share/txl/models from the folder of the program's own
// file, whatever links led to it. Empty where the system does not say.
std::string InstalledModels();

// The model directory that `model` means: where it has a '/' or names something
// that is here, itself; else the directory of that name in `installed`.
// Thread-safe. Errors: NotFound, with both places and what is installed.
absl::StatusOr<std::string> FindModel(const std::string& model,
                                      absl::string_view installed);

// The directory's table of n-grams; null where there is none. Errors: as
// NgramTable::Read.
absl::StatusOr<std::shared_ptr<const NgramTable>> ReadNgrams(
    const ModelDirectory& model);

// What of the flags, the model directory and the engine makes a server guess
// tokens ahead. `speculate`: of the flag. Off, or where the runner does not
// verify guesses, speculate_tokens becomes 0; else the table of n-grams is
// read. A line of the log says which. Errors: as ReadNgrams.
absl::Status SetUpSpeculation(const std::string& speculate,
                              const ModelDirectory& model,
                              const RunnerInfo& info,
                              SchedulerOptions* options);

// One turn of one token before the server says that it serves: a model that
// cannot step is found at start. Blocks until the turn has ended; its error, if
// any.
absl::Status WarmUp(Scheduler* scheduler, SessionStore* store);

// Threads of a step on the CPU: `wanted`, or, when that is 0, one for small
// models and one per core for others. A small model's products are over before
// LibTorch's other threads have woken up, and the native step's take the cores
// that gRPC and clients need (docs/measurements.md).
int ChooseThreads(int wanted, int cores, int64_t parameters);

// Sets LibTorch's threads within an operation. Call before the first one.
void SetTorchThreads(int threads);

}  // namespace txl
