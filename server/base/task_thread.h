#pragma once

// A thread that runs tasks one after the other, in the order in which they were
// given: that of a device, that of its transfers, and the one that talks to
// gRPC on behalf of the scheduler, whose own thread must never wait for a
// transport.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace txl {

// Thread-safe. Tasks must not throw.
class TaskThread {
 public:
  TaskThread();
  // Runs what was given before, then ends.
  ~TaskThread();

  // Runs `task` after those before it, and lets go of it then. Never waits for
  // a task that runs.
  void Run(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: Loop uses the members above
};

// A thread that does something at every interval.

class Periodic {
 public:
  // Calls `act` from a thread of its own, first after one `interval` > 0.
  Periodic(absl::Duration interval, std::function<void()> act);
  // Waits for a call that runs, not for the interval.
  ~Periodic();
  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;

 private:
  void Loop();

  const std::chrono::nanoseconds interval_;
  const std::function<void()> act_;
  // Not Abseil's, whose timeouts follow the wall clock and its jumps.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // under mutex_
  std::thread thread_;     // last
};

}  // namespace txl
