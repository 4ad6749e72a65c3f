#pragma once

// Keeps health checking honest, and the exit certain.

#include <functional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/api/lifecycle.h"
#include "server/base/task_thread.h"
#include "server/signals.h"

namespace txl {

// What health checking should answer.
bool ShouldServe(ServerPhase phase, absl::Duration stall,
                 absl::Duration stall_limit);

struct HealthWatchOptions {
  absl::Duration interval = absl::Milliseconds(100);
  absl::Duration stall_limit = absl::Seconds(2);
  std::function<ServerPhase()> phase;
  std::function<absl::Duration()> stall;  // Scheduler::StallTime
  // The store of sessions does not answer; null: there is none to ask.
  std::function<bool()> store_silent;
  std::function<void(bool)> set_serving;  // called when the answer changes
  absl::Duration hang_limit = absl::ZeroDuration();  // 0: none
  std::function<void(absl::Duration)> hung;  // gets the stall; see HangCount
};

// Checks in a row, this one included, that found a stall of the limit or above;
// kHangChecks make a hang: after the process was stopped (a debugger, a frozen
// container), a single one finds a false stall.
int HangCount(int before, absl::Duration stall, absl::Duration hang_limit);
inline constexpr int kHangChecks = 20;

// A thread that asks ShouldServe at every interval until it is destroyed.
class HealthWatch {
 public:
  explicit HealthWatch(HealthWatchOptions options);

 private:
  void Check();

  const HealthWatchOptions options_;
  bool serving_ = false;  // of the thread, as the next
  int hang_checks_ = 0;
  Periodic thread_;  // last
};

// Ends the process at once; `cause` for the log.
[[noreturn]] void GiveUp(absl::string_view cause, absl::string_view details,
                         ExitCode code = kExitNotServing);

// Ends the process with kExitForced after `timeout`, whatever else hangs, even
// if the log is not read. Cannot be cancelled.
void ExitAfter(absl::Duration timeout);

}  // namespace txl
