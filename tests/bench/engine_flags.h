#pragma once

// What txl-bench-engine is asked for, and the runner that it needs.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/runner_options.h"
#include "tests/bench/peak_flags.h"

namespace txl {

// Of a scoring step: the most that the CUDA step is made for.
inline constexpr int kMostPlanRows = 4096;

struct EngineOptions {
  std::string model;
  std::string sessions = "1,8,32";
  int steps = 20;
  std::vector<int64_t> start_positions = {0};
  std::vector<int64_t> mem_lens = {0};
  int64_t prefill_rows = 0;
  int64_t segment_rows = 512;
  int64_t score_rows = 0;
  std::string slots;
  double temperature = 0;
  double tail_share = 0;
  PeakFlags peaks;
  std::string json_file;
  StepRunnerOptions runner;
};

// `options` outlives the parsing.
void AddEngineFlags(CLI::App& app, EngineOptions& options);

nlohmann::ordered_json EngineOptionsJson(const EngineOptions& options);

// For at most `sessions` at once. InvalidArgument: --slots is neither auto nor
// a number of at least as many.
absl::StatusOr<StepRunnerOptions> EngineRunnerOptions(
    const EngineOptions& options, int sessions);

}  // namespace txl
