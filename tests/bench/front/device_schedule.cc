#include "tests/bench/front/device_schedule.h"

#include <algorithm>

namespace txl {

DeviceTotals operator-(const DeviceTotals& after, const DeviceTotals& before) {
  return {.steps = after.steps - before.steps,
          .rows = after.rows - before.rows,
          .late_steps = after.late_steps - before.late_steps,
          .idle = after.idle - before.idle,
          .busy = after.busy - before.busy};
}

double ShareOnTime(const DeviceTotals& totals) {
  if (totals.steps == 0) return 1;
  return 1 - static_cast<double>(totals.late_steps) /
                 static_cast<double>(totals.steps);
}

absl::Duration DeviceSchedule::Add(absl::Duration now, int64_t rows) {
  const absl::Duration taken =
      absl::Seconds(static_cast<double>(rows) / rows_per_second_);
  if (totals_.steps > 0 && now > end_) {
    ++totals_.late_steps;
    totals_.idle += now - end_;
  }
  end_ = std::max(now, end_) + taken;
  ++totals_.steps;
  totals_.rows += rows;
  totals_.busy += taken;
  return end_;
}

}  // namespace txl
