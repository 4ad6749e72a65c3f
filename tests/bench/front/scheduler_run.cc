#include "tests/bench/front/scheduler_run.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "model/base/status_macros.h"
#include "server/base/clock.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/scheduler.h"
#include "server/session/session_store.h"
#include "tests/bench/process_facts.h"
#include "tests/bench/series.h"

namespace txl {
namespace {

constexpr int64_t kWarmUpSteps = 20;
// Turns go on for so many steps after the measurement.
constexpr int64_t kSpareSteps = 20;

struct Reading {
  absl::Duration time;
  double processor_seconds = 0;
  DeviceTotals device;
};

Reading Read(const PacedRunner& runner) {
  return {Clock::Real()->Monotonic(), ProcessorSeconds(), runner.totals()};
}

RunCost Between(const Reading& begin, const Reading& end, int64_t tokens) {
  RunCost cost;
  cost.tokens = tokens;
  cost.time = end.time - begin.time;
  cost.processor_seconds = end.processor_seconds - begin.processor_seconds;
  cost.device = end.device - begin.device;
  return cost;
}

// Counts the tokens of all sinks and reads the clocks at the first and the last
// one that is measured. Sinks are called by the scheduler's thread alone.
class Probe {
 public:
  Probe(const PacedRunner* runner, const SchedulerRunOptions& options)
      : runner_(runner),
        first_(kWarmUpSteps * options.sessions),
        last_(first_ + options.steps * options.sessions) {}

  void Token() {
    ++tokens_;
    if (tokens_ == first_) begin_ = Read(*runner_);
    if (tokens_ == last_) {
      cost_ = Between(begin_, Read(*runner_), last_ - first_);
      over_.Notify();
    }
  }
  void Failed(const absl::Status& status) {
    if (over_.HasBeenNotified()) return;
    cost_ = status;
    over_.Notify();
  }
  absl::StatusOr<RunCost> Wait() {
    over_.WaitForNotification();
    return cost_;
  }

 private:
  const PacedRunner* const runner_;
  const int64_t first_;
  const int64_t last_;
  int64_t tokens_ = 0;
  Reading begin_;
  absl::StatusOr<RunCost> cost_;  // written before the notification
  absl::Notification over_;
};

class ProbeSink final : public TokenSink {
 public:
  explicit ProbeSink(Probe* probe) : probe_(probe) {}
  void Started(const TurnStarted&) override {}
  void Token(TokenEvent) override { probe_->Token(); }
  void Scored(std::vector<ScoredToken>) override {}
  void Finished(const TurnFinished&) override {}
  void Failed(const absl::Status& status) override { probe_->Failed(status); }
  int Unsent() const override { return 0; }

 private:
  Probe* const probe_;
};

absl::Status SubmitTurn(const SchedulerRunOptions& options,
                        Scheduler& scheduler, SessionStore& store,
                        Probe* probe) {
  Turn turn;
  TXL_ASSIGN_OR_RETURN(turn.lease, store.AcquireTemporary());
  turn.input = {0};
  turn.stop.max_tokens =
      static_cast<int32_t>(kWarmUpSteps + options.steps + kSpareSteps);
  turn.sink = std::make_shared<ProbeSink>(probe);
  turn.cancel = std::make_shared<CancelToken>();
  return scheduler.Submit(std::move(turn));
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
  Clock* const clock = Clock::Real();
  PacedRunner runner(options.runner, clock, absl::SleepFor);
  SessionStoreOptions storing;
  storing.vocabulary = options.vocabulary;
  SessionStore store(storing, clock);
  Metrics metrics;
  Probe probe(&runner, options);
  SchedulerOptions scheduling;
  scheduling.max_queued_calls = options.sessions;  // all come at once
  Scheduler scheduler(scheduling, &runner, &store, &metrics, clock);
  for (int32_t i = 0; i < options.sessions; ++i) {
    TXL_RETURN_IF_ERROR(SubmitTurn(options, scheduler, store, &probe));
  }
  return probe.Wait();
}

absl::StatusOr<RunCost> MeasureRunnerAlone(const SchedulerRunOptions& options) {
  PacedRunner runner(options.runner, Clock::Real(), absl::SleepFor);
  const int64_t depth = runner.info().depth;
  const int64_t last = kWarmUpSteps + options.steps;
  Reading begin;
  for (int64_t step = 0; step < last + depth; ++step) {
    if (step >= depth) {
      TXL_RETURN_IF_ERROR(runner.Collect(step - depth).status());
    }
    if (step == kWarmUpSteps + depth - 1) begin = Read(runner);
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
