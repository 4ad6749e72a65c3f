#pragma once

// A clock that stands still until a test moves it.

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/clock.h"

namespace txl {

class FakeClock : public Clock {
 public:
  absl::Time Now() override {
    absl::MutexLock lock(&mutex_);
    return now_;
  }
  absl::Duration Monotonic() override {
    absl::MutexLock lock(&mutex_);
    return monotonic_;
  }

  // Time passes: both clocks move.
  void Advance(absl::Duration by) {
    absl::MutexLock lock(&mutex_);
    now_ += by;
    monotonic_ += by;
  }
  // Somebody sets the wall clock: only Now changes.
  void SetNow(absl::Time now) {
    absl::MutexLock lock(&mutex_);
    now_ = now;
  }

 private:
  absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::FromCivil(
      absl::CivilSecond(2026, 1, 31, 12, 0, 0), absl::UTCTimeZone());
  absl::Duration monotonic_ ABSL_GUARDED_BY(mutex_) = absl::Hours(1);
};

}  // namespace txl
