// What memory is worth: the paper's Table 9 (arXiv:1901.02860), recomputing a
// sliding window for every token against scoring in segments with memory; or a
// batch of short sequences generated both ways. One JSON line each.
//
//   txl-bench-window --model tests/bench/wt103_large.json
//   txl-bench-window --model tests/bench/sorter.json --batch 128

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "model/base/status_macros.h"
#include "server/engine/host_needs.h"
#include "server/engine/load_step_runner.h"
#include "tests/bench/batch_run.h"
#include "tests/bench/bench_flags.h"
#include "tests/bench/bench_model.h"
#include "tests/bench/machine_peaks.h"
#include "tests/bench/peak_flags.h"
#include "tests/bench/series.h"
#include "tests/bench/window_run.h"

namespace txl {
namespace {

using json = nlohmann::ordered_json;

// Of the sorter's article, on its author's machine.
constexpr double kArticleRatio = 3.04;

struct Options {
  std::string model;
  std::vector<int64_t> lengths = {800, 1800, 2800, 3800};
  WindowOptions window;
  BatchOptions batch;
  PeakFlags peaks;
  std::string json_file;
  StepRunnerOptions runner;
};

class WindowBench {
 public:
  explicit WindowBench(Options options) : options_(std::move(options)) {}

  absl::Status Run() {
    TXL_ASSIGN_OR_RETURN(
        peaks_, ReportPeaks(options_.peaks, options_.runner, document_));
    TXL_ASSIGN_OR_RETURN(const StepPlace place,
                         ChooseStepPlace(options_.runner));
    TXL_ASSIGN_OR_RETURN(
        model_, LoadBenchModel({options_.model, place.weights.str(), 0}));
    if (options_.batch.sequences > 0) {
      TXL_RETURN_IF_ERROR(RunBatch());
    } else {
      for (const int64_t length : options_.lengths) {
        TXL_RETURN_IF_ERROR(RunWindow(length));
      }
    }
    document_["model"] = model_.name;
    document_["options"] = {{"runner", RunnerFlagsJson(options_.runner)}};
    document_["lines"] = lines_;
    return options_.json_file.empty()
               ? absl::OkStatus()
               : WriteJson(document_, options_.json_file);
  }

 private:
  absl::StatusOr<std::unique_ptr<StepRunner>> MakeRunner(
      const ModelConfig& config, const StepRunnerOptions& options) const {
    return CreateStepRunner(config, model_.weights, model_.fingerprint,
                            options);
  }

  absl::Status RunWindow(int64_t length) {
    const ModelConfig config = WithAttentionLength(model_.config, length);
    StepRunnerOptions runner_options = options_.runner;
    runner_options.slots = 1;
    runner_options.spare_rows = options_.window.segment_rows;
    runner_options.max_rows =
        static_cast<int32_t>(options_.window.segment_rows);
    TXL_ASSIGN_OR_RETURN(const std::unique_ptr<StepRunner> runner,
                         MakeRunner(config, runner_options));
    WindowOptions window = options_.window;
    window.length = length;
    TXL_ASSIGN_OR_RETURN(const WindowMeasurement measured,
                         MeasureWindow(runner.get(), config, window));
    Print(WindowLine(measured, peaks_), runner->info());
    return absl::OkStatus();
  }

  absl::Status RunBatch() {
    const BatchOptions& batch = options_.batch;
    ModelConfig config = model_.config;
    config.mem_len = batch.fed_tokens();
    config.window.reset();
    config.mem_init = MemoryInit::kEmpty;
    StepRunnerOptions runner_options = options_.runner;
    runner_options.slots = batch.sequences;
    runner_options.spare_rows = std::max<int64_t>(8, batch.fed_tokens());
    runner_options.max_rows =
        static_cast<int32_t>(batch.sequences * batch.fed_tokens());
    TXL_ASSIGN_OR_RETURN(const std::unique_ptr<StepRunner> runner,
                         MakeRunner(config, runner_options));
    BatchTokens with_memory, recomputed;
    TXL_ASSIGN_OR_RETURN(
        const double memory_seconds,
        SecondsOf(GenerateWithMemory, runner.get(), with_memory));
    TXL_ASSIGN_OR_RETURN(
        const double recomputing_seconds,
        SecondsOf(GenerateRecomputing, runner.get(), recomputed));
    Print({{"kind", "batch"},
           {"sequences", batch.sequences},
           {"prompt_tokens", batch.prompt_tokens},
           {"generated_tokens", batch.generated_tokens},
           {"ratio", Rounded(recomputing_seconds / memory_seconds)},
           {"article_ratio", kArticleRatio},
           {"recomputing_milliseconds", Rounded(1e3 * recomputing_seconds)},
           {"with_memory_milliseconds", Rounded(1e3 * memory_seconds)},
           {"equal_tokens", with_memory == recomputed}},
          runner->info());
    return absl::OkStatus();
  }

  // Of one batch: the median of those that fit the time, after a first one.
  using Generate = absl::StatusOr<BatchTokens> (*)(StepRunner*,
                                                   const BatchOptions&);
  absl::StatusOr<double> SecondsOf(Generate generate, StepRunner* runner,
                                   BatchTokens& tokens) const {
    using Clock = std::chrono::steady_clock;
    TXL_ASSIGN_OR_RETURN(tokens, generate(runner, options_.batch));
    std::vector<double> seconds;
    double total = 0;
    while (seconds.empty() || total < options_.window.seconds) {
      const Clock::time_point begin = Clock::now();
      TXL_RETURN_IF_ERROR(generate(runner, options_.batch).status());
      seconds.push_back(
          std::chrono::duration<double>(Clock::now() - begin).count());
      total += seconds.back();
    }
    return Quantile(std::move(seconds), 0.5);
  }

  void Print(json line, const RunnerInfo& info) {
    line["model"] = model_.name;
    line["device"] = info.device;
    line["form"] = info.form;
    std::cout << line.dump() << std::endl;
    lines_.push_back(std::move(line));
  }

  const Options options_;
  BenchModel model_;
  std::optional<MachinePeaks> peaks_;
  json lines_ = json::array();
  json document_;
};

void AddFlags(CLI::App& app, Options& options) {
  WindowOptions& window = options.window;
  window.tail_share = 0.2;
  options.batch.sequences = 0;
  app.add_option("--model", options.model,
                 "model directory, or a config.json: random weights of it")
      ->required();
  app.add_option("--lengths", options.lengths,
                 "attention lengths, instead of the model's")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--segment", window.segment_rows, "most tokens of a step")
      ->check(CLI::Range(8, 512))
      ->capture_default_str();
  app.add_option("--seconds", window.seconds, "of each measurement, at least")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--tail-share", window.tail_share,
                 "of scored targets that are in a tail")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--batch", options.batch.sequences,
                 "generate a batch of short sequences instead")
      ->check(CLI::PositiveNumber);
  app.add_option("--prompt", options.batch.prompt_tokens, "of a sequence")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--generate", options.batch.generated_tokens, "a sequence")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  AddPeakFlags(app, options.peaks);
  app.add_option("--json", options.json_file, "write everything there too");
  AddRunnerFlags(app, options.runner);
}

}  // namespace
}  // namespace txl

int main(int argc, char** argv) {
  txl::Options options;
  CLI::App app("Memory against recomputing everything");
  txl::AddFlags(app, options);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = txl::WindowBench(std::move(options)).Run();
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
