#pragma once

// A thread of the engine (the device thread, that of transfers): runs tasks one
// after the other, in the order in which they were queued.

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace txl {

// Thread-safe. Tasks must not throw and must not add tasks to
// their own queue.
class DeviceQueue {
 public:
  DeviceQueue();
  // Runs what is still queued, then joins.
  ~DeviceQueue();
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  // Never blocks on a running task.
  void Add(std::function<void()> task);

 private:
  void Loop();

  absl::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: runs Loop from its construction on
};

}  // namespace txl
