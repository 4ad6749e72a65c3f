#pragma once

// A thread that does something at every interval.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

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
