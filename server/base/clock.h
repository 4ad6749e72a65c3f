#pragma once

// Time as an argument: tests move a fake clock instead of sleeping.

#include <time.h>

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace txl {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Wall time, for what users see (create_time, ...).
  virtual absl::Time Now() = 0;
  // Never goes back; for durations, time-to-live and deadlines.
  virtual absl::Duration Monotonic() = 0;

  static Clock* Real();  // never deleted
};

// The clocks of the system.
inline Clock* Clock::Real() {
  class RealClock final : public Clock {
   public:
    absl::Time Now() override { return absl::Now(); }
    absl::Duration Monotonic() override {
      return absl::FromChrono(
          std::chrono::steady_clock::now().time_since_epoch());
    }
  };
  static RealClock* const clock = new RealClock;
  return clock;
}

// Time since the machine started; it goes on while it sleeps and while this
// process is stopped, whatever becomes of the wall clock.
inline absl::Duration BootTime() {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return absl::DurationFromTimespec(now);
}

}  // namespace txl
