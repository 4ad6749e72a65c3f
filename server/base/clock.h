#pragma once

// Time as an argument: tests move a fake clock instead of sleeping.

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

}  // namespace txl
