// Speed of whole steps of the engine alone, without scheduler or gRPC, beside
// what the machine allows: decoding over concurrent sessions whose memories
// are full, scoring segments of them, or a long prompt in segments. One JSON
// line each.
//
//   txl-bench-engine --model DIR --sessions 1,8,32 --steps 20
//   txl-bench-engine --model DIR --prefill 4096
//   txl-bench-engine --model DIR --score 128 --sessions 32

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "model/base/number_format.h"
#include "model/base/status_macros.h"
#include "server/base/memory_guard.h"
#include "server/engine/host_needs.h"
#include "server/engine/load_step_runner.h"
#include "tests/bench/bench_flags.h"
#include "tests/bench/bench_model.h"
#include "tests/bench/engine_flags.h"
#include "tests/bench/engine_report.h"
#include "tests/bench/machine_peaks.h"
#include "tests/bench/peak_flags.h"
#include "tests/bench/process_facts.h"
#include "tests/bench/series.h"
#include "tests/bench/session_driver.h"
#include "tests/bench/step_costs.h"

namespace txl {
namespace {

using json = nlohmann::ordered_json;

constexpr int kWarmUpSteps = 3;

// The engine has accepted the name.
NumberFormat FormatNamed(const std::string& name) {
  return FindFormat(kWeightFormats, name).value_or(NumberFormat::kF32);
}

class EngineBench {
 public:
  EngineBench(const EngineOptions& options, std::vector<int> sessions)
      : options_(options), sessions_(std::move(sessions)) {}

  absl::Status Run() {
    TXL_ASSIGN_OR_RETURN(
        peaks_, ReportPeaks(options_.peaks, options_.runner, document_));
    for (const int64_t mem_len : options_.mem_lens) {
      TXL_RETURN_IF_ERROR(Load(mem_len));
      document_.emplace("resident_bytes_before", ResidentBytes());
      for (const int64_t start : options_.start_positions) {
        TXL_RETURN_IF_ERROR(RunFrom(start));
      }
    }
    document_["resident_bytes_after"] = ResidentBytes();
    document_["model"] = model_;
    document_["options"] = EngineOptionsJson(options_);
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
    on_cuda_ = place.native_cuda.has_value();
    TXL_ASSIGN_OR_RETURN(const StepRunnerOptions runner,
                         EngineRunnerOptions(options_, MaxSessions()));
    TXL_ASSIGN_OR_RETURN(runner_, CreateStepRunner(model.config, model.weights,
                                                   model.fingerprint, runner));
    if (options_.prefill_rows > 0 || runner_->info().slots >= MaxSessions()) {
      return absl::OkStatus();
    }
    return absl::ResourceExhaustedError(absl::StrCat(
        "--slots auto: there is room for ", runner_->info().slots));
  }

  int MaxSessions() const {
    return *std::max_element(sessions_.begin(), sessions_.end());
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
    return options_.score_rows > 0 ? Score(driver) : Decode(driver);
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
      TXL_ASSIGN_OR_RETURN(measured.times,
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

  absl::Status Score(SessionDriver& driver) {
    for (const int streams : sessions_) {
      ScoreMeasurement measured;
      measured.work = {streams, options_.score_rows};
      measured.rounds = options_.steps;
      TXL_RETURN_IF_ERROR(driver.Score(measured.work, 1).status());
      measured.position = driver.position(0);
      TXL_ASSIGN_OR_RETURN(measured.times,
                           driver.Score(measured.work, measured.rounds));
      const int32_t most = StreamsOfAPlan(measured.work, runner_->info());
      for (int first = 0; first < streams; first += most) {
        measured.costs.push_back(
            ScoreCosts(config_, Work(std::min(most, streams - first)),
                       options_.score_rows));
      }
      Print(ScoreLine(measured, peaks_));
    }
    return absl::OkStatus();
  }

  StepWork Work(int sessions) const {
    StepWork work;
    work.formats.weights = FormatNamed(options_.runner.weights);
    work.formats.memory = FormatNamed(options_.runner.memory);
    // The CUDA step keeps positional keys as it keeps weights.
    work.formats.derived =
        on_cuda_ ? work.formats.weights : FormatNamed(options_.runner.derived);
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
    line["slots"] = runner_->info().slots;
    line["bytes_per_slot"] = runner_->info().bytes_per_slot;
    line["resident_bytes"] = ResidentBytes();
    PrintWithout("phases", line);
    lines_.push_back(std::move(line));
  }

  const EngineOptions options_;
  const std::vector<int> sessions_;
  ModelConfig config_;
  std::string model_;
  bool on_cuda_ = false;  // the native step
  std::optional<MachinePeaks> peaks_;
  std::unique_ptr<StepRunner> runner_;
  json lines_ = json::array();
  json document_;
};

absl::Status Bench(const EngineOptions& options) {
  TXL_ASSIGN_OR_RETURN(std::vector<int> sessions,
                       ParseCounts(options.sessions));
  EngineBench bench(options, std::move(sessions));
  TXL_RETURN_IF_ERROR(bench.Run());
  if (options.json_file.empty()) return absl::OkStatus();
  return WriteJson(bench.document(), options.json_file);
}

}  // namespace
}  // namespace txl

int main(int argc, char** argv) {
  txl::EngineOptions options;
  CLI::App app("Speed of the engine's steps beside the machine's limits");
  txl::AddEngineFlags(app, options);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = txl::Bench(options);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
