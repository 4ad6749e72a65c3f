// The scheduler with in-process sinks beside the engine alone, on the same
// runner of a real model; and what a long prompt does to running streams.
//
//   txl-bench-scheduler --model DIR --sessions 32,128
//   txl-bench-scheduler --model DIR --sessions 32 --prompt-rows 128
//                       --beside-prompt 4096

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/model_directory.h"
#include "server/base/log.h"
#include "server/engine/host_needs.h"
#include "server/engine/load_step_runner.h"
#include "tests/bench/bench_flags.h"
#include "tests/bench/bench_model.h"
#include "tests/bench/front/engine_share.h"
#include "tests/bench/series.h"

namespace txl {
namespace {

using json = nlohmann::ordered_json;

struct Options {
  std::string model;
  std::string sessions = "32,128";
  StreamLoad load;
  std::string json_file;
  StepRunnerOptions runner;
};

absl::StatusOr<std::unique_ptr<StepRunner>> MakeRunner(const Options& options,
                                                       const BenchModel& model,
                                                       int sessions) {
  StepRunnerOptions runner = options.runner;
  runner.slots = sessions + (options.load.beside_tokens > 0 ? 1 : 0);
  runner.max_rows = sessions + options.load.prompt_rows_per_step;
  return CreateStepRunner(model.config, model.weights, model.fingerprint,
                          runner);
}

absl::Status Bench(Options options) {
  TXL_ASSIGN_OR_RETURN(const std::vector<int> counts,
                       ParseCounts(options.sessions));
  TXL_ASSIGN_OR_RETURN(const StepPlace place, ChooseStepPlace(options.runner));
  TXL_ASSIGN_OR_RETURN(const BenchModel model,
                       LoadBenchModel({options.model, place.weights.str(), 0}));
  ModelDirectory directory;  // for its vocabulary
  if (std::filesystem::is_directory(options.model)) {
    TXL_ASSIGN_OR_RETURN(directory, OpenModelDirectory(options.model));
  }
  TXL_ASSIGN_OR_RETURN(
      const std::unique_ptr<StepRunner> runner,
      MakeRunner(options, model,
                 *std::max_element(counts.begin(), counts.end())));
  StreamLoad& load = options.load;
  if (load.prompt_tokens == 0) load.prompt_tokens = model.config.mem_len;
  load.prompt_ids = model.config.bin_size(0);
  load.vocabulary = directory.vocabulary.get();
  DriverOptions driving;
  driving.head_ids = load.prompt_ids;
  json document = {{"model", model.name},
                   {"options", RunnerFlagsJson(options.runner)},
                   {"device", runner->info().device},
                   {"lines", json::array()}};
  for (const int sessions : counts) {
    load.sessions = sessions;
    TXL_ASSIGN_OR_RETURN(const EngineShare share,
                         MeasureEngineShare(load, driving, runner.get()));
    document["lines"].push_back(EngineShareLine(load, share));
    std::cout << document["lines"].back().dump() << std::endl;
  }
  if (options.json_file.empty()) return absl::OkStatus();
  return WriteJson(document, options.json_file);
}

void AddFlags(CLI::App& app, Options& options) {
  StreamLoad& load = options.load;
  load.steps = 200;
  load.temperature = 0;
  load.prompt_tokens = 0;
  load.prompt_rows_per_step = 1024;
  options.runner.spare_rows = 128;
  app.add_option("--model", options.model,
                 "model directory, or a config.json: random weights of it")
      ->required();
  app.add_option("--sessions", options.sessions, "as 32,128 or 1-8")
      ->capture_default_str();
  app.add_option("--steps", load.steps, "measured steps")
      ->check(CLI::Range(2, 1'000'000))
      ->capture_default_str();
  app.add_option("--prompt", load.prompt_tokens,
                 "tokens of a session's prompt; 0: a full memory")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--prompt-rows", load.prompt_rows_per_step,
                 "prompt tokens of a step, over all sessions")
      ->check(CLI::Range(1, 2048))
      ->capture_default_str();
  app.add_option("--beside-prompt", load.beside_tokens,
                 "then feed one more session this many tokens beside the "
                 "streams")
      ->check(CLI::PositiveNumber);
  app.add_option("--spare-rows", options.runner.spare_rows,
                 "most prompt tokens of a session in a step")
      ->check(CLI::Range(8, 2048))
      ->capture_default_str();
  app.add_option("--temperature", load.temperature, "0: greedy")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--json", options.json_file, "write everything there too");
  AddRunnerFlags(app, options.runner);
}

}  // namespace
}  // namespace txl

int main(int argc, char** argv) {
  // As txl-server.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  txl::Options options;
  CLI::App app("The scheduler beside the engine alone");
  txl::AddFlags(app, options);
  CLI11_PARSE(app, argc, argv);
  txl::SetLogLevel(txl::LogSeverity::kError);
  const absl::Status status = txl::Bench(std::move(options));
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
