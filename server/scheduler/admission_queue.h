#pragma once

// Turns that wait for a slot: bounded by calls and by prompt tokens, in order
// of arrival. It also keeps the turn counters of the queue, so that a snapshot
// never sees a turn twice or not at all.

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/turn.h"

namespace txl {

struct AdmissionQueueOptions {
  int32_t max_calls = 0;
  // Prompts that wait have at most so many tokens; one that waits alone may
  // have more, because it would be refused for ever.
  int64_t max_tokens = 0;
  absl::Duration retry_after;  // RetryInfo of QUEUE_FULL
};

struct QueuedTurn {
  Turn turn;
  absl::Duration submitted;  // Clock::Monotonic
};

// Thread-safe. Predicates run under the queue's lock: they must not call back.
class AdmissionQueue {
 public:
  AdmissionQueue(AdmissionQueueOptions options, Metrics* metrics);

  // Counts the turn as started. Errors: QUEUE_FULL + retry, DRAINING after
  // Close; `turn` is then left as it was.
  absl::Status Push(Turn& turn, absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes and returns the oldest turn for which `wanted` is true. Its time in
  // the queue ends `now`.
  std::optional<QueuedTurn> TakeFirst(
      absl::Duration now, absl::FunctionRef<bool(const QueuedTurn&)> wanted)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool empty() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The earliest deadline of a waiting turn; infinite when there is none.
  absl::Duration EarliestDeadline() const ABSL_LOCKS_EXCLUDED(mutex_);

  // When the oldest waiting turn came; infinite when there is none.
  absl::Duration OldestSubmitted() const ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on Push fails with DRAINING, but for turns that only save a state.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const AdmissionQueueOptions options_;
  Metrics* const metrics_;
  mutable absl::Mutex mutex_;
  std::deque<QueuedTurn> turns_ ABSL_GUARDED_BY(mutex_);
  int64_t tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace txl
