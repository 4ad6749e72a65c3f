#pragma once

// One thread that talks to gRPC on behalf of the scheduler, whose own thread
// must never wait for a transport.

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace txl {

// Thread-safe.
class CallbackThread {
 public:
  CallbackThread();
  // Runs what was given before, then ends.
  ~CallbackThread();

  // Runs `task` soon, tasks in order. Tasks must not block.
  void Run(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: Loop uses the members above
};

}  // namespace txl
