#pragma once

// Keeps health checking honest, and the exit certain.

#include <functional>

#include "absl/time/time.h"
#include "server/base/periodic.h"
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

 private:
  void Check();

  const HealthWatchOptions options_;
  bool serving_ = false;  // of the thread
  Periodic thread_;       // last
};

// Ends the process with kExitForced after `timeout`, whatever else hangs and
// whoever does not read the log. Cannot be called off.
void ExitAfter(absl::Duration timeout);

}  // namespace txl
