#include "tests/bench/engine_flags.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "tests/bench/bench_flags.h"

namespace txl {
namespace {

// 0: as many as there is room for.
absl::StatusOr<int32_t> SlotsNamed(const std::string& name, int sessions) {
  if (name.empty()) return sessions;
  if (name == "auto") return 0;
  int32_t slots = 0;
  if (absl::SimpleAtoi(name, &slots) && slots >= sessions) return slots;
  return absl::InvalidArgumentError(absl::StrCat(
      "--slots: ", name, " is neither auto nor at least ", sessions));
}

}  // namespace

void AddEngineFlags(CLI::App& app, EngineOptions& options) {
  app.add_option("--model", options.model,
                 "model directory, or a config.json: random weights of it")
      ->required();
  app.add_option("--sessions", options.sessions, "counts, as 1,8,32 or 1-40")
      ->capture_default_str();
  app.add_option("--steps", options.steps, "measured steps of each count")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--start-position", options.start_positions,
                 "of the sessions, one run each; 0: a full memory")
      ->delimiter(',')
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--mem-len", options.mem_lens,
                 "memory lengths, one run each; 0: the model's")
      ->delimiter(',')
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--prefill", options.prefill_rows,
                 "measure feeding this many tokens of one prompt instead")
      ->check(CLI::PositiveNumber);
  app.add_option("--segment", options.segment_rows, "tokens fed in one step")
      ->check(CLI::Range(8, 65536))
      ->capture_default_str();
  app.add_option("--score", options.score_rows,
                 "measure scoring segments of this many tokens of each session "
                 "instead")
      ->check(CLI::Range(8, kMostPlanRows));
  app.add_option("--slots", options.slots,
                 "filled memories: a number, or auto: as many as there is room "
                 "for [as many as sessions]");
  app.add_option("--temperature", options.temperature, "0: greedy")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option(
         "--tail-share", options.tail_share,
         "how often a token meets a tail: expected costs, and random weights")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  AddPeakFlags(app, options.peaks);
  app.add_option("--json", options.json_file, "write everything there too");
  AddRunnerFlags(app, options.runner);
}

nlohmann::ordered_json EngineOptionsJson(const EngineOptions& options) {
  return {{"model", options.model},
          {"sessions", options.sessions},
          {"steps", options.steps},
          {"start_positions", options.start_positions},
          {"mem_lens", options.mem_lens},
          {"prefill_rows", options.prefill_rows},
          {"segment_rows", options.segment_rows},
          {"score_rows", options.score_rows},
          {"slots", options.slots},
          {"temperature", options.temperature},
          {"tail_share", options.tail_share},
          {"runner", RunnerFlagsJson(options.runner)}};
}

absl::StatusOr<StepRunnerOptions> EngineRunnerOptions(
    const EngineOptions& options, int sessions) {
  StepRunnerOptions runner = options.runner;
  int64_t rows = sessions;
  if (options.prefill_rows > 0) {
    rows = 1;
    runner.spare_rows = options.segment_rows;
  } else if (options.score_rows > 0) {
    rows = std::min<int64_t>(sessions * options.score_rows, kMostPlanRows);
    runner.spare_rows = options.score_rows;
  }
  TXL_ASSIGN_OR_RETURN(
      runner.slots,
      SlotsNamed(options.slots, options.prefill_rows > 0 ? 1 : sessions));
  runner.max_rows =
      static_cast<int32_t>(std::max<int64_t>(rows, runner.spare_rows));
  return runner;
}

}  // namespace txl
