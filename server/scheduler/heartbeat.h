#pragma once

// How long work has waited for the device: the measure of a hung step.

#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace txl {

// Thread-safe. Times are Clock::Monotonic.
class Heartbeat {
 public:
  // Work came in: the loop should move from now on.
  void Start(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (!since_.has_value()) since_ = now;
  }
  // A step ended.
  void Beat(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    since_ = now;
  }
  // Nothing to do: no work, or only work that waits for its clients.
  void Rest() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    since_.reset();
  }
  absl::Duration Age(absl::Duration now) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return since_.has_value() ? now - *since_ : absl::ZeroDuration();
  }

 private:
  mutable absl::Mutex mutex_;
  std::optional<absl::Duration> since_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace txl
