#pragma once

// Lets a thread sleep until somebody has something for it. A Set before Wait is
// remembered, so that no wake-up is lost.

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace txl {

// Thread-safe; one thread waits.
class WakeSignal {
 public:
  void Set() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    set_ = true;
  }

  // Waits for Set at most `limit` and takes it.
  void Wait(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&set_), limit);
    set_ = false;
  }

 private:
  absl::Mutex mutex_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace txl
