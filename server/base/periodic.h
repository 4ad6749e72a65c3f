#pragma once

// A thread that does something at every interval.

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace txl {

class Periodic {
 public:
  // Calls `act` from a thread of its own, first after one `interval` > 0.
  Periodic(absl::Duration interval, std::function<void()> act);
  // Waits for a call that runs, not for the interval.
  ~Periodic();
  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;

 private:
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);

  const absl::Duration interval_;
  const std::function<void()> act_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last
};

}  // namespace txl
