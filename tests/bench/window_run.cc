#include "tests/bench/window_run.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <utility>

#include "model/base/status_macros.h"
#include "tests/bench/series.h"
#include "tests/bench/session_driver.h"
#include "tests/bench/step_costs.h"

namespace txl {
namespace {

std::optional<double> PaperRatio(int64_t length) {
  const std::map<int64_t, double> table = {
      {800, 363}, {1800, 773}, {2800, 1409}, {3800, 1874}};
  const auto found = table.find(length);
  if (found == table.end()) return std::nullopt;
  return found->second;
}

struct Repeated {
  int64_t times = 0;
  double seconds = 0;  // of all
};

// Again and again until the time is over, once at least.
absl::StatusOr<Repeated> Repeat(double seconds,
                                const std::function<absl::Status()>& work) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  Repeated repeated;
  while (repeated.times == 0 || repeated.seconds < seconds) {
    TXL_RETURN_IF_ERROR(work());
    ++repeated.times;
    repeated.seconds =
        std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return repeated;
}

// The same whatever the length: values do not change the work.
int32_t TokenAt(int64_t position, int64_t vocab) {
  return static_cast<int32_t>(position * 7919 % vocab);
}

}  // namespace

ModelConfig WithAttentionLength(ModelConfig config, int64_t length) {
  config.mem_len = length;
  config.window = length;
  config.mem_init = MemoryInit::kEmpty;
  return config;
}

absl::Status RecomputeWindow(StepRunner* runner, int64_t tokens,
                             int64_t segment_rows) {
  runner->Clear(0);
  for (int64_t begin = 0; begin < tokens; begin += segment_rows) {
    StepPlan plan;
    const int64_t end = std::min(tokens, begin + segment_rows);
    for (int64_t t = begin; t < end; ++t) {
      StepRow row;
      row.position = t;
      row.kind = t + 1 == tokens ? RowKind::kDecode : RowKind::kPrefill;
      row.token_id = TokenAt(t, runner->info().vocab_size);
      plan.rows.push_back(row);
    }
    TXL_ASSIGN_OR_RETURN(const StepResult result,
                         runner->Collect(runner->Submit(std::move(plan))));
    TXL_RETURN_IF_ERROR(result.rows.back().status);
  }
  return absl::OkStatus();
}

absl::StatusOr<WindowMeasurement> MeasureWindow(StepRunner* runner,
                                                const ModelConfig& config,
                                                const WindowOptions& options) {
  WindowMeasurement measured;
  measured.length = options.length;
  measured.paper_ratio = PaperRatio(options.length);
  const int64_t rows = options.segment_rows;

  DriverOptions driving;
  driving.head_ids = config.bin_size(0);
  driving.tail_share = options.tail_share;
  TXL_ASSIGN_OR_RETURN(SessionDriver driver,
                       SessionDriver::Create(runner, driving));
  TXL_ASSIGN_OR_RETURN(
      const Repeated fed, Repeat(options.seconds, [&] {
        return driver.Feed(rows, rows, RowKind::kPrefill).status();
      }));
  measured.prompt_flop_rate = static_cast<double>(fed.times) *
                              PromptFlops(config, driver.position(0), rows) /
                              fed.seconds;
  TXL_ASSIGN_OR_RETURN(
      const Repeated scored, Repeat(options.seconds, [&] {
        return driver.Feed(rows, rows, RowKind::kScore).status();
      }));
  measured.scored_tokens = scored.times * rows;
  measured.score_seconds =
      scored.seconds / static_cast<double>(measured.scored_tokens);
  TXL_ASSIGN_OR_RETURN(const Repeated windows, Repeat(options.seconds, [&] {
                         return RecomputeWindow(runner, options.length, rows);
                       }));
  measured.windows = windows.times;
  measured.window_seconds =
      windows.seconds / static_cast<double>(windows.times);
  measured.window_flops = PromptFlops(config, 0, options.length);
  return measured;
}

nlohmann::ordered_json WindowLine(const WindowMeasurement& measured,
                                  const std::optional<MachinePeaks>& peaks) {
  const double window_rate = measured.window_flops / measured.window_seconds;
  nlohmann::ordered_json line = {
      {"kind", "window"},
      {"attention_length", measured.length},
      {"ratio", Rounded(measured.window_seconds / measured.score_seconds)}};
  if (measured.paper_ratio) line["paper_ratio"] = *measured.paper_ratio;
  line["recomputing_milliseconds_per_token"] =
      Rounded(1e3 * measured.window_seconds);
  line["scoring_milliseconds_per_token"] =
      Rounded(1e3 * measured.score_seconds);
  line["windows"] = measured.windows;
  line["scored_tokens"] = measured.scored_tokens;
  line["recomputing_gigaflops"] = Rounded(window_rate / 1e9);
  line["prompt_gigaflops"] = Rounded(measured.prompt_flop_rate / 1e9);
  line["recomputing_share_of_prompt_rate"] =
      Rounded(window_rate / measured.prompt_flop_rate);
  if (peaks.has_value()) {
    line["recomputing_share_of_fma_peak"] =
        Rounded(window_rate / peaks->flops_per_second);
  }
  return line;
}

}  // namespace txl
