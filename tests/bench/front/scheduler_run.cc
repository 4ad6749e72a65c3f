#include "tests/bench/front/scheduler_run.h"

#include <vector>

#include "absl/time/clock.h"
#include "model/base/status_macros.h"
#include "server/base/clock.h"
#include "tests/bench/front/stream_run.h"
#include "tests/bench/process_facts.h"
#include "tests/bench/series.h"

namespace txl {
namespace {

constexpr int64_t kRunWarmUpSteps = 20;

struct Reading {
  absl::Duration time;
  double processor_seconds = 0;
  DeviceTotals device;
};

Reading Read(const PacedRunner& runner) {
  return {Clock::Real()->Monotonic(), ProcessorSeconds(), runner.totals()};
}

RunCost Between(const Reading& begin, const Reading& end, int64_t tokens) {
  return {.tokens = tokens,
          .time = end.time - begin.time,
          .processor_seconds = end.processor_seconds - begin.processor_seconds,
          .device = end.device - begin.device};
}

StepPlan DecodePlan(int32_t sessions, int64_t position) {
  StepPlan plan;
  plan.rows.resize(static_cast<size_t>(sessions));
  for (int32_t slot = 0; slot < sessions; ++slot) {
    StepRow& row = plan.rows[static_cast<size_t>(slot)];
    row.slot = slot;
    row.position = position;
    row.kind = RowKind::kDecode;
    row.token_id = kLastSampled;
  }
  return plan;
}

}  // namespace

absl::StatusOr<RunCost> MeasureScheduler(const SchedulerRunOptions& options) {
  PacedRunner runner(options.runner, Clock::Real(), absl::SleepFor);
  StreamLoad load;
  load.sessions = options.sessions;
  load.steps = options.steps;
  load.vocabulary = options.vocabulary;
  std::vector<DeviceTotals> totals;
  TXL_ASSIGN_OR_RETURN(const StreamTimes times, RunStreams(load, &runner, [&] {
                         totals.push_back(runner.totals());
                       }));
  return RunCost{.tokens = times.tokens,
                 .time = times.time,
                 .processor_seconds = times.processor_seconds,
                 .device = totals[1] - totals[0]};
}

absl::StatusOr<RunCost> MeasureRunnerAlone(const SchedulerRunOptions& options) {
  PacedRunner runner(options.runner, Clock::Real(), absl::SleepFor);
  const int64_t depth = runner.info().depth;
  const int64_t last = kRunWarmUpSteps + options.steps;
  Reading begin;
  for (int64_t step = 0; step < last + depth; ++step) {
    if (step >= depth) {
      TXL_RETURN_IF_ERROR(runner.Collect(step - depth).status());
    }
    if (step == kRunWarmUpSteps + depth - 1) begin = Read(runner);
    if (step < last) runner.Submit(DecodePlan(options.sessions, step));
  }
  return Between(begin, Read(runner), options.steps * options.sessions);
}

nlohmann::ordered_json CostLine(const RunCost& cost, double rows_per_second) {
  const double seconds = absl::ToDoubleSeconds(cost.time);
  const double tokens = static_cast<double>(cost.tokens);
  return {{"tokens_per_second", Rounded(tokens / seconds)},
          {"share_of_rate", Rounded(tokens / seconds / rows_per_second)},
          {"steps", cost.device.steps},
          {"share_on_time", Rounded(ShareOnTime(cost.device))},
          {"idle_share",
           Rounded(absl::ToDoubleSeconds(cost.device.idle) / seconds)},
          {"processor_microseconds_per_token",
           Rounded(1e6 * cost.processor_seconds / tokens)}};
}

}  // namespace txl
