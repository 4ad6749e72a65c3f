// Decode speed of the engine alone: tokens/s over concurrent sessions whose
// memory is full, without scheduler or gRPC. Prints one JSON line per session
// count; the ratio to one session is of the same run.
//
//   txl-bench-engine --model DIR --sessions 1,8,32 --steps 20

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/model_directory.h"
#include "server/engine/device_step_runner.h"

namespace txl {
namespace {

constexpr int kWarmUpSteps = 3;

struct Options {
  std::string model;
  std::vector<int> sessions = {1, 8, 32};
  int steps = 20;
  std::string device = "auto";
  std::string step = "auto";
  int threads = 1;
  std::string weights = "f32", memory = "f32", derived = "f32";
};

// Decodes `sessions` slots for some steps; every row sees a full memory. The
// rows before the first position are those of a cleared slot: their values do
// not change the work.
class DecodeRun {
 public:
  DecodeRun(StepRunner* runner, int sessions)
      : runner_(runner),
        sessions_(sessions),
        position_(runner->info().mem_len + 1) {
    SlotSampling greedy;
    greedy.params.temperature = 0;
    for (int slot = 0; slot < sessions; ++slot) {
      runner->Clear(slot);
      runner->Configure(slot, greedy);
    }
  }

  absl::Status Run(int steps) {
    std::deque<StepId> flying;
    for (int step = 0; step < steps; ++step) {
      flying.push_back(runner_->Submit(NextPlan()));
      if (static_cast<int>(flying.size()) == runner_->info().depth) {
        TXL_RETURN_IF_ERROR(runner_->Collect(flying.front()).status());
        flying.pop_front();
      }
    }
    for (const StepId id : flying) {
      TXL_RETURN_IF_ERROR(runner_->Collect(id).status());
    }
    return absl::OkStatus();
  }

 private:
  StepPlan NextPlan() {
    StepPlan plan;
    for (int slot = 0; slot < sessions_; ++slot) {
      StepRow row;
      row.slot = slot;
      row.position = position_;
      row.kind = RowKind::kDecode;
      row.token_id = first_ ? 0 : kLastSampled;
      plan.rows.push_back(row);
    }
    first_ = false;
    ++position_;
    return plan;
  }

  StepRunner* runner_;
  int sessions_;
  int64_t position_;
  bool first_ = true;
};

absl::StatusOr<double> TokensPerSecond(StepRunner* runner, int sessions,
                                       int steps) {
  DecodeRun run(runner, sessions);
  TXL_RETURN_IF_ERROR(run.Run(kWarmUpSteps));
  const absl::Time begin = absl::Now();
  TXL_RETURN_IF_ERROR(run.Run(steps));
  return sessions * steps / absl::ToDoubleSeconds(absl::Now() - begin);
}

absl::Status Bench(const Options& options) {
  TXL_ASSIGN_OR_RETURN(const ModelDirectory directory,
                       OpenModelDirectory(options.model));
  StepRunnerOptions runner_options;
  runner_options.device = options.device;
  runner_options.step = options.step;
  runner_options.threads = options.threads;
  runner_options.weights = options.weights;
  runner_options.memory = options.memory;
  runner_options.derived = options.derived;
  runner_options.slots =
      *std::max_element(options.sessions.begin(), options.sessions.end());
  runner_options.max_rows = std::max(runner_options.slots, 64);
  TXL_ASSIGN_OR_RETURN(const auto runner,
                       LoadStepRunner(directory, runner_options));
  double single = 0;
  for (const int sessions : options.sessions) {
    TXL_ASSIGN_OR_RETURN(
        const double rate,
        TokensPerSecond(runner.get(), sessions, options.steps));
    nlohmann::json line = {{"model", directory.name},
                           {"device", runner->info().device},
                           {"form", runner->info().form},
                           {"sessions", sessions},
                           {"tokens_per_second", rate},
                           {"step_milliseconds", 1e3 * sessions / rate}};
    if (sessions == 1) single = rate;
    if (single > 0) line["times_one_session"] = rate / single;
    std::cout << line.dump() << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace txl

int main(int argc, char** argv) {
  txl::Options options;
  CLI::App app("Decode speed of the engine alone");
  app.add_option("--model", options.model, "model directory")->required();
  app.add_option("--sessions", options.sessions, "concurrent sessions")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--steps", options.steps, "measured steps")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--device", options.device)->capture_default_str();
  app.add_option("--step", options.step, "auto, native, torch")
      ->capture_default_str();
  app.add_option("--weights", options.weights)->capture_default_str();
  app.add_option("--memory", options.memory)->capture_default_str();
  app.add_option("--derived", options.derived)->capture_default_str();
  app.add_option("--threads", options.threads, "of the native step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = txl::Bench(options);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
