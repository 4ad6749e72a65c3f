#pragma once

// A StepRunner without a model for measuring what stands around one: steps take
// time by the clock, at a programmed rate, and almost none of the processor.
// Tokens are random, a function of slot and position.
//
// It keeps no memory: states that leave a slot are zeros of a model with one
// channel. No alternatives are reported, and no preconditions are checked
// (tests/fakes/fake_step_runner.h does that).

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/engine/step_runner.h"
#include "tests/bench/front/device_schedule.h"

namespace txl {

struct PacedRunnerOptions {
  double rows_per_second = 60'000;  // > 0
  int32_t max_rows = 512;           // of a step; as many slots
  int64_t vocab_size = 0;           // >= 1
  int64_t mem_len = 256;
  int32_t depth = 2;
};

// The token that the row of `position` samples.
int32_t PacedToken(int32_t slot, int64_t position, int64_t vocab_size);

// All calls from one thread, but for totals().
class PacedRunner : public StepRunner {
 public:
  // Collect passes the time until a step's end to `sleep`, which must make the
  // clock go on by as much. The clock outlives the runner.
  PacedRunner(const PacedRunnerOptions& options, Clock* clock,
              std::function<void(absl::Duration)> sleep);

  const RunnerInfo& info() const override { return info_; }
  StepId Submit(StepPlan plan) override;
  absl::StatusOr<StepResult> Collect(StepId step) override;
  void Configure(int32_t, SlotSampling) override {}
  void Clear(int32_t) override {}
  void Copy(int32_t, int32_t) override {}
  std::future<absl::StatusOr<StateImage>> Export(int32_t slot,
                                                 int64_t position) override;
  std::future<absl::Status> Import(
      int32_t slot, std::shared_ptr<const StateImage> image) override;

  // Thread-safe. Steps that were submitted.
  DeviceTotals totals() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct InFlight {
    StepId id = 0;
    absl::Duration end;
    StepPlan plan;
  };

  StepResult ResultOf(const StepPlan& plan) const;

  const RunnerInfo info_;
  const double rows_per_second_;
  Clock* const clock_;
  const std::function<void(absl::Duration)> sleep_;

  StepId next_step_ = 0;
  std::deque<InFlight> in_flight_;

  mutable absl::Mutex mutex_;
  DeviceSchedule schedule_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace txl
