#pragma once

// When the steps of a device with a programmed rate begin and end. A pure
// function of when they were submitted and of their rows.

#include <cstdint>

#include "absl/time/time.h"

namespace txl {

struct DeviceTotals {
  int64_t steps = 0;
  int64_t rows = 0;
  // Submitted after the step before had ended: the device stood idle. The first
  // step of all is not late.
  int64_t late_steps = 0;
  absl::Duration idle;  // before late steps
  absl::Duration busy;
};

// What was counted since `before`.
DeviceTotals operator-(const DeviceTotals& after, const DeviceTotals& before);

// 1 when there was no step.
double ShareOnTime(const DeviceTotals& totals);

// Thread-compatible. One step runs at a time, in the order of submission; a
// step of n rows takes n / rate.
class DeviceSchedule {
 public:
  // REQUIRES: rows_per_second > 0.
  explicit DeviceSchedule(double rows_per_second)
      : rows_per_second_(rows_per_second) {}

  // When a step ends that is submitted now. REQUIRES: rows >= 1, `now` (of a
  // monotonic clock) not before that of the last call.
  absl::Duration Add(absl::Duration now, int64_t rows);

  const DeviceTotals& totals() const { return totals_; }

 private:
  const double rows_per_second_;
  absl::Duration end_;  // of the last step
  DeviceTotals totals_;
};

}  // namespace txl
