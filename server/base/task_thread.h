#pragma once

// Threads that run tasks or act at intervals, and what wakes one.

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

// A thread that runs tasks one after the other, in the order in which they were
// given: that of a device, that of its transfers, and the one that talks to
// gRPC on behalf of the scheduler, whose own thread must never wait for a
// transport.
//
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

// Lets a thread sleep until somebody has something for it. A Set before Wait is
// remembered, so that no wake-up is lost. Thread-safe; one thread waits.
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
