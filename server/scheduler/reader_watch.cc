#include "server/scheduler/reader_watch.h"

#include <algorithm>

namespace txl {

void ReaderWatch::Look(const SchedulerOptions& options, int64_t given,
                       int unsent, absl::Duration now) {
  if (!lags()) {
    if (unsent < options.park_events) return;
    *this = ReaderWatch();
    since_ = last_read_ = window_begin_ = looked_ = now;
    read_ = window_read_ = given - unsent;
    return;
  }
  if (unsent <= CaughtUpEvents(options.park_events)) {
    since_.reset();
    return;
  }
  looked_ = now;
  if (given - unsent != read_) {
    read_ = given - unsent;
    last_read_ = now;
  }
  if (now - window_begin_ < options.rate_window) return;
  below_rate_ = static_cast<double>(read_ - window_read_) <
                options.least_rate * absl::ToDoubleSeconds(options.rate_window);
  window_begin_ = now;
  window_read_ = read_;
}

bool ReaderWatch::TooSlow(const SchedulerOptions& options) const {
  return lags() &&
         (below_rate_ || looked_ - last_read_ >= options.slow_reader_limit);
}

absl::Duration ReaderWatch::NextLimit(const SchedulerOptions& options) const {
  if (!lags()) return absl::InfiniteDuration();
  return std::min(last_read_ + options.slow_reader_limit,
                  window_begin_ + options.rate_window);
}

}  // namespace txl
