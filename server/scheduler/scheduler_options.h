#pragma once

// The scheduler's settings; the server's flags are bound to these fields.

#include <cstdint>

#include "absl/time/time.h"

namespace txl {

struct SchedulerOptions {
  int32_t max_queued_calls = 256;
  int64_t max_queued_tokens = 1'000'000;  // of waiting prompts
  // Prompt rows of one step over all turns; bounds what a prompt adds to the
  // inter-token latency of others.
  int32_t prompt_rows_per_step = 128;
  int32_t park_events = 64;  // unsent events at which a turn is parked
  absl::Duration slow_reader_limit = absl::Seconds(30);
  // A session idle for less is never moved out of its slot.
  absl::Duration min_idle = absl::ZeroDuration();
  absl::Duration retry_after = absl::Milliseconds(200);  // RetryInfo
};

}  // namespace txl
