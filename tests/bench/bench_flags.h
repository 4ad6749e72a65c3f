#pragma once

// Flags that the whole-step benchmarks share.

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "server/engine/runner_options.h"

namespace txl {

// --device, --step, --threads (by default one per core), --form, --weights,
// --memory, --derived, --products, --overlapped-rows. `options` outlives the
// parsing.
void AddRunnerFlags(CLI::App& app, StepRunnerOptions& options);
nlohmann::ordered_json RunnerFlagsJson(const StepRunnerOptions& options);

// Writes a document and a line break; Unavailable naming the file.
absl::Status WriteJson(const nlohmann::ordered_json& document,
                       const std::string& path);

}  // namespace txl
