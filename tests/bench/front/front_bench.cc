// txl-bench-front: what stands around the device, without a model. The whole
// server, or with --sink the scheduler alone, on a runner whose steps take time
// by the clock at a programmed rate and almost none of the processor.
//
//   txl-bench-front --model DIR --listen unix:/tmp/front.sock
//   txl-bench-front --model DIR --sink --sessions 32,128,512
//
// The model directory gives the vocabulary; its weights are not loaded. Served
// until SIGTERM; front_rate.py puts the load on it.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "model/base/status_macros.h"
#include "server/base/log.h"
#include "server/server.h"
#include "server/signals.h"
#include "tests/bench/bench_flags.h"
#include "tests/bench/front/paced_runner.h"
#include "tests/bench/front/scheduler_run.h"
#include "tests/bench/series.h"

namespace txl {
namespace {

using json = nlohmann::ordered_json;

struct Options {
  std::string model;
  std::string listen = "127.0.0.1:0";
  std::string metrics_listen;
  std::string store;
  PacedRunnerOptions runner;
  bool sink = false;
  std::string sessions = "32,128,512";
  double seconds = 5;
  std::string json_file;
};

absl::Status Serve(const Options& options, ModelDirectory model,
                   SignalWaiter& signals) {
  ServerFlags flags;
  flags.listen = options.listen;
  flags.metrics_listen = options.metrics_listen;
  flags.store.store = options.store;
  // All streams of a closed loop start at once.
  flags.scheduler.max_queued_calls = 4 * options.runner.max_rows;
  auto runner = std::make_unique<PacedRunner>(options.runner, Clock::Real(),
                                              absl::SleepFor);
  TXL_ASSIGN_OR_RETURN(
      const std::unique_ptr<Server> server,
      Server::StartWith(std::move(flags), std::move(model), std::move(runner)));
  signals.StartServing();
  std::printf("listening on %s\n", server->address().c_str());
  if (!server->metrics_address().empty()) {
    std::printf("metrics on http://%s/metrics\n",
                server->metrics_address().c_str());
  }
  std::fflush(stdout);
  signals.WaitForRequest();
  return absl::OkStatus();
}

absl::Status RunSink(const Options& options, const Vocabulary* vocabulary) {
  TXL_ASSIGN_OR_RETURN(const std::vector<int> counts,
                       ParseCounts(options.sessions));
  const double rate = options.runner.rows_per_second;
  json lines = json::array();
  for (const int sessions : counts) {
    if (sessions > options.runner.max_rows) {
      return absl::InvalidArgumentError(
          absl::StrCat("--sessions: ", sessions, " are more than --rows"));
    }
    SchedulerRunOptions run;
    run.runner = options.runner;
    run.sessions = sessions;
    run.steps = 1 + static_cast<int64_t>(
                        std::min(options.seconds * rate / sessions, 1e8));
    run.vocabulary = vocabulary;
    TXL_ASSIGN_OR_RETURN(const RunCost alone, MeasureRunnerAlone(run));
    TXL_ASSIGN_OR_RETURN(const RunCost scheduled, MeasureScheduler(run));
    lines.push_back({{"sessions", sessions},
                     {"runner_alone", CostLine(alone, rate)},
                     {"scheduler", CostLine(scheduled, rate)}});
    std::cout << lines.back().dump() << std::endl;
  }
  if (options.json_file.empty()) return absl::OkStatus();
  return WriteJson(lines, options.json_file);
}

absl::Status Run(Options options, SignalWaiter& signals) {
  TXL_ASSIGN_OR_RETURN(ModelDirectory model, OpenModelDirectory(options.model));
  options.runner.vocab_size = model.config.vocab_size;
  options.runner.mem_len = model.config.mem_len;
  if (options.sink) return RunSink(options, model.vocabulary.get());
  return Serve(options, std::move(model), signals);
}

void AddFlags(CLI::App& app, Options& options) {
  app.add_option("--model", options.model, "model directory")->required();
  app.add_option("--rows", options.runner.max_rows,
                 "most rows of a step, and slots")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--tokens-per-second", options.runner.rows_per_second,
                 "of the device: a step of n rows takes n / this")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--listen", options.listen, "HOST:PORT or unix:PATH")
      ->capture_default_str();
  app.add_option("--metrics-listen", options.metrics_listen,
                 "HOST:PORT of the metrics endpoint [none]");
  app.add_option("--store", options.store,
                 "Redis that servers share, as txl-server's [none]");
  app.add_flag("--sink", options.sink,
               "measure the scheduler without gRPC, beside the runner alone");
  app.add_option("--sessions", options.sessions, "--sink: as 32,128 or 1-8")
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "--sink: of each measurement")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--json", options.json_file, "--sink: write all lines there");
}

}  // namespace
}  // namespace txl

int main(int argc, char** argv) {
  txl::SignalWaiter signals;  // before any other thread
  // As txl-server.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  txl::Options options;
  CLI::App app("The server around a device of a programmed rate");
  txl::AddFlags(app, options);
  CLI11_PARSE(app, argc, argv);
  txl::SetLogLevel(txl::LogSeverity::kError);
  const absl::Status status = txl::Run(std::move(options), signals);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
