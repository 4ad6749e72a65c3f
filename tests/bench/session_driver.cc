#include "tests/bench/session_driver.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <numeric>
#include <utility>

#include "model/base/status_macros.h"

namespace txl {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point& last) {
  const Clock::time_point now = Clock::now();
  return std::chrono::duration<double>(now - std::exchange(last, now)).count();
}

// The device's seconds.
absl::StatusOr<double> CollectRows(StepRunner* runner, StepId step) {
  TXL_ASSIGN_OR_RETURN(const StepResult result, runner->Collect(step));
  for (const RowResult& row : result.rows) TXL_RETURN_IF_ERROR(row.status);
  return result.device_seconds;
}

// All but the first.
double SumOfRest(const std::vector<double>& values) {
  return std::accumulate(values.begin() + 1, values.end(), 0.0);
}

}  // namespace

std::optional<double> IdleShare(const StepTimes& times) {
  if (times.seconds.size() < 2) return std::nullopt;
  const double busy = SumOfRest(times.device_seconds);
  if (busy <= 0) return std::nullopt;
  return 1 - busy / SumOfRest(times.seconds);
}

int32_t StreamsOfAPlan(const ScoreWork& work, const RunnerInfo& info) {
  const int64_t fit = info.max_rows / work.segment_rows;
  return static_cast<int32_t>(std::clamp<int64_t>(fit, 1, work.streams));
}

SessionDriver::SessionDriver(StepRunner* runner, const DriverOptions& options)
    : runner_(runner), options_(options) {
  const int64_t start =
      std::max(options.start_position, runner->info().mem_len);
  positions_.assign(options.sessions, start);
  if (options_.head_ids == 0) options_.head_ids = runner->info().vocab_size;
}

absl::StatusOr<SessionDriver> SessionDriver::Create(
    StepRunner* runner, const DriverOptions& options) {
  SessionDriver driver(runner, options);
  TXL_RETURN_IF_ERROR(driver.Fill());
  return driver;
}

// Real rows also because memory that was never written is one page of zeros,
// which is read from a cache.
absl::Status SessionDriver::Fill() {
  const RunnerInfo& info = runner_->info();
  runner_->Clear(0);
  positions_[0] -= info.mem_len;
  TXL_RETURN_IF_ERROR(
      Feed(info.mem_len, info.spare_rows, RowKind::kPrefill).status());
  for (int32_t slot = 0; slot < options_.sessions; ++slot) {
    if (slot > 0) runner_->Copy(0, slot);
    SlotSampling sampling;
    sampling.params.temperature = options_.temperature;
    sampling.params.seed = static_cast<uint64_t>(slot);
    runner_->Configure(slot, sampling);
  }
  return absl::OkStatus();
}

int32_t SessionDriver::RandomToken() {
  const int64_t vocab = runner_->info().vocab_size;
  const bool tail = options_.head_ids < vocab &&
                    std::bernoulli_distribution(options_.tail_share)(random_);
  std::uniform_int_distribution<int64_t> ids(
      tail ? options_.head_ids : 0, tail ? vocab - 1 : options_.head_ids - 1);
  return static_cast<int32_t>(ids(random_));
}

StepPlan SessionDriver::DecodePlan(int32_t sessions, bool first) {
  StepPlan plan;
  for (int32_t slot = 0; slot < sessions; ++slot) {
    StepRow row;
    row.slot = slot;
    row.position = positions_[slot]++;
    row.kind = RowKind::kDecode;
    row.token_id = first ? RandomToken() : kLastSampled;
    plan.rows.push_back(row);
  }
  return plan;
}

StepPlan SessionDriver::ScorePlan(const ScoreWork& work, int32_t first,
                                  int32_t last) {
  StepPlan plan;
  for (int32_t slot = first; slot < last; ++slot) {
    AddRows(slot, work.segment_rows, RowKind::kScore, plan);
  }
  return plan;
}

void SessionDriver::AddRows(int32_t slot, int64_t count, RowKind kind,
                            StepPlan& plan) {
  for (int64_t r = 0; r < count; ++r) {
    StepRow row;
    row.slot = slot;
    row.position = positions_[slot]++;
    row.kind = kind;
    row.token_id = RandomToken();
    if (kind == RowKind::kScore) row.score_target = RandomToken();
    plan.rows.push_back(row);
  }
}

absl::StatusOr<StepTimes> SessionDriver::RunPlans(
    int count, absl::FunctionRef<StepPlan(int)> plan_of) {
  StepTimes times;
  std::deque<StepId> flying;
  Clock::time_point last = Clock::now();
  for (int step = 0; step < count || !flying.empty(); ++step) {
    if (step < count) {
      flying.push_back(runner_->Submit(plan_of(step)));
      const bool room = std::ssize(flying) < runner_->info().depth;
      if (room && step + 1 < count) continue;
    }
    TXL_ASSIGN_OR_RETURN(const double device_seconds,
                         CollectRows(runner_, flying.front()));
    flying.pop_front();
    times.device_seconds.push_back(device_seconds);
    times.seconds.push_back(SecondsSince(last));
  }
  return times;
}

absl::StatusOr<StepTimes> SessionDriver::Decode(int32_t sessions, int steps) {
  return RunPlans(steps,
                  [&](int step) { return DecodePlan(sessions, step == 0); });
}

absl::StatusOr<StepTimes> SessionDriver::Score(const ScoreWork& work,
                                               int rounds) {
  const int32_t most = StreamsOfAPlan(work, runner_->info());
  const int plans = (work.streams + most - 1) / most;
  return RunPlans(plans * rounds, [&](int step) {
    const int32_t first = step % plans * most;
    return ScorePlan(work, first, std::min(work.streams, first + most));
  });
}

absl::StatusOr<std::vector<double>> SessionDriver::Feed(int64_t rows,
                                                        int64_t segment_rows,
                                                        RowKind kind) {
  const RunnerInfo& info = runner_->info();
  const int64_t most =
      std::min({segment_rows, info.spare_rows, int64_t{info.max_rows}});
  std::vector<double> seconds;
  Clock::time_point last = Clock::now();
  for (int64_t done = 0; done < rows; done += most) {
    StepPlan plan;
    AddRows(0, std::min(most, rows - done), kind, plan);
    TXL_RETURN_IF_ERROR(
        CollectRows(runner_, runner_->Submit(std::move(plan))).status());
    seconds.push_back(SecondsSince(last));
  }
  return seconds;
}

}  // namespace txl
