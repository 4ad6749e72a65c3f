#pragma once

// How a stream's reader keeps up. Decides nothing but whether it lags, and
// whether it reads too little to be waited for.
//
// A reader lags from the moment when `park_events` events are unsent until
// half of them are: a single read now and then is not keeping up. While it
// lags it has to read something within `slow_reader_limit`, and `least_rate`
// events per second over each `rate_window`.

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "server/scheduler/scheduler_options.h"

namespace txl {

// Unsent events at which a reader that lagged has caught up.
inline int CaughtUpEvents(int park_events) { return park_events / 2; }

// Not thread-safe. Times are Clock::Monotonic and do not go back.
class ReaderWatch {
 public:
  // At `now`, `unsent` of the `given` events that the stream got are not read;
  // `given` may count from any event on.
  void Look(const SchedulerOptions& options, int64_t given, int unsent,
            absl::Duration now);

  bool lags() const { return since_.has_value(); }
  // REQUIRES: lags.
  absl::Duration since() const { return *since_; }
  // What the last look found.
  bool TooSlow(const SchedulerOptions& options) const;
  // When the next look may find it too slow; infinite while it does not lag.
  absl::Duration NextLimit(const SchedulerOptions& options) const;

 private:
  std::optional<absl::Duration> since_;
  absl::Duration looked_;
  int64_t read_ = 0;
  absl::Duration last_read_;
  absl::Duration window_begin_;
  int64_t window_read_ = 0;  // read_ at its begin
  bool below_rate_ = false;  // over the last whole window
};

}  // namespace txl
