// Speed of whole steps of the engine alone, without scheduler or gRPC, beside
// what the machine allows: decoding over concurrent sessions whose memories
// are full, or a long prompt in segments. One JSON line each.
//
//   txl-bench-engine --model DIR --sessions 1,8,32 --steps 20
//   txl-bench-engine --model DIR --prefill 4096

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "model/base/status_macros.h"
#include "server/engine/load_step_runner.h"
#include "server/engine/step_place.h"
#include "tests/bench/bench_flags.h"
#include "tests/bench/bench_model.h"
#include "tests/bench/engine_report.h"
#include "tests/bench/machine_peaks.h"
#include "tests/bench/process_facts.h"
#include "tests/bench/series.h"
#include "tests/bench/session_driver.h"
#include "tests/bench/step_costs.h"

namespace txl {
namespace {

using json = nlohmann::ordered_json;

constexpr int kWarmUpSteps = 3;

struct Options {
  std::string model;
  std::string sessions = "1,8,32";
  int steps = 20;
  std::vector<int64_t> start_positions = {0};
  std::vector<int64_t> mem_lens = {0};
  int64_t prefill_rows = 0;
  int64_t segment_rows = 512;
  double temperature = 0;
  double tail_share = 0;
  bool peaks = true;
  std::string json_file;
  StepRunnerOptions runner;
};

NumberFormat FormatNamed(const std::string& name) {
  if (name == "bf16") return NumberFormat::kBF16;
  if (name == "f16") return NumberFormat::kF16;
  if (name == "int8") return NumberFormat::kInt8;
  return NumberFormat::kF32;
}

json OptionsJson(const Options& options) {
  return {{"model", options.model},
          {"sessions", options.sessions},
          {"steps", options.steps},
          {"start_positions", options.start_positions},
          {"mem_lens", options.mem_lens},
          {"prefill_rows", options.prefill_rows},
          {"segment_rows", options.segment_rows},
          {"temperature", options.temperature},
          {"tail_share", options.tail_share},
          {"runner", RunnerFlagsJson(options.runner)}};
}

class EngineBench {
 public:
  EngineBench(const Options& options, std::vector<int> sessions)
      : options_(options), sessions_(std::move(sessions)) {}

  absl::Status Run() {
    if (options_.peaks) Measure();
    for (const int64_t mem_len : options_.mem_lens) {
      TXL_RETURN_IF_ERROR(Load(mem_len));
      if (runner_->info().device != "cpu") peaks_.reset();
      document_.emplace("resident_bytes_before", ResidentBytes());
      for (const int64_t start : options_.start_positions) {
        TXL_RETURN_IF_ERROR(RunFrom(start));
      }
    }
    document_["resident_bytes_after"] = ResidentBytes();
    document_["model"] = model_;
    document_["options"] = OptionsJson(options_);
    document_["lines"] = lines_;
    return absl::OkStatus();
  }

  const json& document() const { return document_; }

 private:
  absl::Status Load(int64_t mem_len) {
    runner_.reset();  // first: two may not fit
    TXL_ASSIGN_OR_RETURN(const StepPlace place,
                         ChooseStepPlace(options_.runner));
    TXL_ASSIGN_OR_RETURN(BenchModel model,
                         LoadBenchModel({options_.model, place.weights.str(),
                                         options_.tail_share}));
    if (mem_len > 0) {
      model.config.mem_len = mem_len;
      if (model.config.window.has_value()) model.config.window = mem_len;
    }
    config_ = model.config;
    model_ = model.name;
    TXL_ASSIGN_OR_RETURN(runner_,
                         CreateStepRunner(model.config, model.weights,
                                          model.fingerprint, RunnerOptions()));
    return absl::OkStatus();
  }

  void Measure() {
    PeakOptions options;
    options.threads = options_.runner.threads;
    peaks_ = MeasurePeaks(options);
    document_["machine"] = MachineLine(*peaks_);
    PrintWithout("by_footprint", document_["machine"]);
  }

  int MaxSessions() const {
    return *std::max_element(sessions_.begin(), sessions_.end());
  }

  StepRunnerOptions RunnerOptions() const {
    StepRunnerOptions runner = options_.runner;
    runner.slots = options_.prefill_rows > 0 ? 1 : MaxSessions();
    if (options_.prefill_rows > 0) runner.spare_rows = options_.segment_rows;
    runner.max_rows = static_cast<int32_t>(
        std::max<int64_t>(runner.slots, runner.spare_rows));
    return runner;
  }

  absl::Status RunFrom(int64_t start) {
    DriverOptions driving;
    driving.sessions = runner_->info().slots;
    driving.start_position = start;
    driving.temperature = options_.temperature;
    driving.head_ids = config_.bin_size(0);
    driving.tail_share = options_.tail_share;
    TXL_ASSIGN_OR_RETURN(SessionDriver driver,
                         SessionDriver::Create(runner_.get(), driving));
    if (options_.prefill_rows > 0) return Prefill(driver);
    return Decode(driver);
  }

  absl::Status Prefill(SessionDriver& driver) {
    PromptMeasurement measured;
    measured.position = driver.position(0);
    measured.rows = options_.prefill_rows;
    measured.segment_rows = options_.segment_rows;
    measured.flops =
        PromptFlops(config_, measured.position, options_.prefill_rows);
    TXL_ASSIGN_OR_RETURN(measured.segment_seconds,
                         driver.Feed(options_.prefill_rows,
                                     options_.segment_rows, RowKind::kPrefill));
    Print(PromptLine(measured, peaks_));
    return absl::OkStatus();
  }

  absl::Status Decode(SessionDriver& driver) {
    // First at the largest count, so that everything is allocated.
    TXL_RETURN_IF_ERROR(driver.Decode(MaxSessions(), kWarmUpSteps).status());
    double single = 0;
    for (const int sessions : sessions_) {
      TXL_RETURN_IF_ERROR(driver.Decode(sessions, kWarmUpSteps).status());
      DecodeMeasurement measured;
      measured.sessions = sessions;
      measured.position = driver.position(0);
      TXL_ASSIGN_OR_RETURN(measured.step_seconds,
                           driver.Decode(sessions, options_.steps));
      measured.costs = DecodeCosts(config_, Work(sessions));
      json line = DecodeLine(measured, peaks_);
      const double rate = line["tokens_per_second"];
      if (sessions == 1) single = rate;
      if (single > 0) line["times_one_session"] = rate / single;
      Print(std::move(line));
    }
    return absl::OkStatus();
  }

  StepWork Work(int sessions) const {
    StepWork work;
    work.formats.weights = FormatNamed(options_.runner.weights);
    work.formats.memory = FormatNamed(options_.runner.memory);
    work.formats.derived = FormatNamed(options_.runner.derived);
    work.form = runner_->info().form == "absorbed" ? AttentionForm::kAbsorbed
                                                   : AttentionForm::kProjected;
    work.sessions = sessions;
    work.tail_share = options_.tail_share;
    return work;
  }

  // What is too long for a line is in the file alone.
  static void PrintWithout(const char* field, json line) {
    line.erase(field);
    std::cout << line.dump() << std::endl;
  }

  void Print(json line) {
    line["model"] = model_;
    line["mem_len"] = runner_->info().mem_len;
    line["device"] = runner_->info().device;
    line["form"] = runner_->info().form;
    line["resident_bytes"] = ResidentBytes();
    PrintWithout("phases", line);
    lines_.push_back(std::move(line));
  }

  const Options options_;
  const std::vector<int> sessions_;
  ModelConfig config_;
  std::string model_;
  std::optional<MachinePeaks> peaks_;
  std::unique_ptr<StepRunner> runner_;
  json lines_ = json::array();
  json document_;
};

absl::Status Bench(const Options& options) {
  TXL_ASSIGN_OR_RETURN(std::vector<int> sessions,
                       ParseCounts(options.sessions));
  EngineBench bench(options, std::move(sessions));
  TXL_RETURN_IF_ERROR(bench.Run());
  if (options.json_file.empty()) return absl::OkStatus();
  return WriteJson(bench.document(), options.json_file);
}

void AddFlags(CLI::App& app, Options& options) {
  StepRunnerOptions& runner = options.runner;
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
  app.add_option("--temperature", options.temperature, "0: greedy")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option(
         "--tail-share", options.tail_share,
         "how often a token meets a tail: expected costs, and random weights")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_flag("--peaks,!--no-peaks", options.peaks,
               "measure the machine first [on]");
  app.add_option("--json", options.json_file, "write everything there too");
  app.add_option("--device", runner.device)->capture_default_str();
  AddRunnerFlags(app, runner);
}

}  // namespace
}  // namespace txl

int main(int argc, char** argv) {
  txl::Options options;
  CLI::App app("Speed of the engine's steps beside the machine's limits");
  txl::AddFlags(app, options);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = txl::Bench(options);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
