#pragma once

// The scheduler with streams that take every token at once, and the runner
// without a scheduler, at the same programmed rate: what scheduling costs.

#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/text/vocabulary.h"
#include "tests/bench/front/device_schedule.h"
#include "tests/bench/front/paced_runner.h"

namespace txl {

struct SchedulerRunOptions {
  PacedRunnerOptions runner;
  int32_t sessions = 32;                   // 1..runner.max_rows
  int64_t steps = 1000;                    // measured; 1..1e9
  const Vocabulary* vocabulary = nullptr;  // of the texts; null: none
};

// Of the measured steps.
struct RunCost {
  int64_t tokens = 0;
  absl::Duration time;
  double processor_seconds = 0;  // user and system, of this process
  DeviceTotals device;
};

// One GENERATE turn of each session, all from the start to the end of the
// measurement, on a thread of the scheduler. The status of a turn that ends
// before.
absl::StatusOr<RunCost> MeasureScheduler(const SchedulerRunOptions& options);

// The same rows, as many steps in flight.
absl::StatusOr<RunCost> MeasureRunnerAlone(const SchedulerRunOptions& options);

// Tokens per second, and as a share of the programmed rate; share of steps on
// time, of the device's idle time; processor time per token.
nlohmann::ordered_json CostLine(const RunCost& cost, double rows_per_second);

}  // namespace txl
