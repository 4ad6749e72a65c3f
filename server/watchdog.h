#pragma once

// Keeps health checking honest, and the exit certain.

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/rpc/lifecycle.h"

namespace txl {

// What health checking should answer.
bool ShouldServe(ServerPhase phase, absl::Duration stall,
                 absl::Duration stall_limit);

struct HealthWatchOptions {
  absl::Duration interval = absl::Milliseconds(100);
  absl::Duration stall_limit = absl::Seconds(2);
  std::function<ServerPhase()> phase;
  std::function<absl::Duration()> stall;  // Scheduler::StallTime
  std::function<void(bool)> set_serving;  // called when the answer changes
};

// A thread that asks ShouldServe at every interval until it is destroyed.
class HealthWatch {
 public:
  explicit HealthWatch(HealthWatchOptions options);
  ~HealthWatch();

 private:
  void Loop();

  const HealthWatchOptions options_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last
};

// Ends the process with status 0 after `timeout`, whatever else hangs. Cannot
// be called off.
void ExitAfter(absl::Duration timeout);

}  // namespace txl
