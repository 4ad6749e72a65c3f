#include "tests/bench/session_driver.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

#include "model/base/status_macros.h"

namespace txl {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point& last) {
  const Clock::time_point now = Clock::now();
  return std::chrono::duration<double>(now - std::exchange(last, now)).count();
}

absl::Status CollectRows(StepRunner* runner, StepId step) {
  TXL_ASSIGN_OR_RETURN(const StepResult result, runner->Collect(step));
  for (const RowResult& row : result.rows) TXL_RETURN_IF_ERROR(row.status);
  return absl::OkStatus();
}

}  // namespace

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

absl::StatusOr<std::vector<double>> SessionDriver::Decode(int32_t sessions,
                                                          int steps) {
  std::vector<double> seconds;
  std::deque<StepId> flying;
  Clock::time_point last = Clock::now();
  for (int step = 0; step < steps || !flying.empty(); ++step) {
    if (step < steps) {
      flying.push_back(runner_->Submit(DecodePlan(sessions, step == 0)));
      const bool room = std::ssize(flying) < runner_->info().depth;
      if (room && step + 1 < steps) continue;
    }
    TXL_RETURN_IF_ERROR(CollectRows(runner_, flying.front()));
    flying.pop_front();
    seconds.push_back(SecondsSince(last));
  }
  return seconds;
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
    for (int64_t r = done; r < std::min(rows, done + most); ++r) {
      StepRow row;
      row.position = positions_[0]++;
      row.kind = kind;
      row.token_id = RandomToken();
      if (kind == RowKind::kScore) row.score_target = RandomToken();
      plan.rows.push_back(row);
    }
    TXL_RETURN_IF_ERROR(CollectRows(runner_, runner_->Submit(std::move(plan))));
    seconds.push_back(SecondsSince(last));
  }
  return seconds;
}

}  // namespace txl
