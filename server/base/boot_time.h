#pragma once

#include <time.h>

#include "absl/time/time.h"

namespace txl {

// Since the machine started; goes on while it sleeps and while this process is
// stopped, whatever becomes of the wall clock.
inline absl::Duration BootTime() {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return absl::DurationFromTimespec(now);
}

}  // namespace txl
