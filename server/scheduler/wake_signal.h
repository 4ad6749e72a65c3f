#pragma once

// Lets a thread sleep until somebody has something for it. A Set before Wait is
// remembered, so that no wake-up is lost.

#include <condition_variable>
#include <mutex>

#include "absl/time/time.h"

namespace txl {

// Thread-safe; one thread waits.
class WakeSignal {
 public:
  void Set() {
    const std::lock_guard<std::mutex> lock(mutex_);
    set_ = true;
    changed_.notify_one();
  }

  // Waits for Set at most `limit`, which is finite, and takes it.
  void Wait(absl::Duration limit) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoNanoseconds(limit),
                      [this] { return set_; });
    set_ = false;
  }

 private:
  // Not Abseil's, whose timeouts follow the wall clock and its jumps.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;  // under mutex_
};

}  // namespace txl
