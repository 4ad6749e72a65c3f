#pragma once

// The scheduler's settings, with their defaults. docs/settings.md lists those
// that users can set.

#include <cstdint>
#include <memory>

#include "absl/time/time.h"

namespace txl {

class NgramTable;

struct SchedulerOptions {
  int32_t max_queued_calls = 256;
  int64_t max_queued_tokens = 1'000'000;  // of waiting prompts
  // Prompt rows of one step over all turns; bounds what a prompt adds to the
  // inter-token latency of others.
  int32_t prompt_rows_per_step = 128;
  // A turn that has waited for a slot for so long ends with QUEUE_FULL.
  absl::Duration queue_limit = absl::Seconds(60);
  // A turn goes before those of a priority lower by one that came up to so long
  // before it: what a step of priority is worth in waiting.
  absl::Duration priority_age = absl::Seconds(5);
  // A turn that has not ended so long after it came ends with
  // DEADLINE_EXCEEDED.
  absl::Duration longest_turn = absl::Hours(1);
  int32_t park_events = 64;  // unsent events at which a turn is parked
  // A parked turn's reader that reads nothing for so long, or fewer events per
  // second than least_rate over rate_window, ends it with CLIENT_TOO_SLOW.
  absl::Duration slow_reader_limit = absl::Seconds(30);
  double least_rate = 0.1;
  absl::Duration rate_window = absl::Seconds(60);
  // Parked turns that may be without a slot, which they gave up for others;
  // where one more would be, it ends with CLIENT_TOO_SLOW.
  int32_t max_parked_turns = 1024;
  // A session idle for less is never moved out of its slot.
  absl::Duration min_idle = absl::ZeroDuration();
  absl::Duration retry_after = absl::Milliseconds(200);  // RetryInfo
  // Tokens that a step may guess ahead for a stream (guesser.h), where the
  // runner verifies guesses; 0: none.
  int32_t speculate_tokens = 8;
  // Host bytes for states of prompts that later turns may begin with
  // (prefix_cache.h). 0: prompts are never looked for, not in slots either.
  int64_t prefix_cache_bytes = 0;
  // Fewer rows are fed sooner than they are found and moved. >= 1
  int64_t least_prefix_rows = 16;
  // What they are guessed from beside the session's own ids; may be null.
  std::shared_ptr<const NgramTable> ngrams;
};

}  // namespace txl
