#pragma once

// Keeps health checking honest, and the exit certain: a process that hangs, or
// whose own listener is deaf, ends, so that it is started again.

#include <sys/socket.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/api/lifecycle.h"
#include "server/base/clock.h"
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

// Attempts that failed one after another, so far.
struct FailedAttempts {
  int count = 0;
  absl::Duration since;  // when the first of them began, if count > 0
};

// `before` and one attempt more, that began then.
FailedAttempts WithAttempt(const FailedAttempts& before, bool ok,
                           absl::Duration began);
// Failing for `limit`, and not once only: a process that was stopped for long
// has one attempt that failed.
bool IsDeaf(const FailedAttempts& failed, absl::Duration now,
            absl::Duration limit);

struct ListenerWatchOptions {
  absl::Duration interval = absl::Seconds(1);  // between attempts
  absl::Duration limit = absl::Seconds(5);
  // An attempt; takes a time well below the limit.
  std::function<absl::Status()> attempt;
  // Called, again and again, when it is deaf; why the last attempt failed.
  std::function<void(const absl::Status&)> deaf;
  Clock* clock = Clock::Real();
};

// Attempts from a thread of its own until it is destroyed.
class ListenerWatch {
 public:
  explicit ListenerWatch(ListenerWatchOptions options);

 private:
  void Attempt();

  const ListenerWatchOptions options_;
  FailedAttempts failed_;  // of the thread
  Periodic thread_;        // last
};

// A client's first bytes to a listener of HTTP/2 or TLS, and whether it
// answers.

class ListenerProbe {
 public:
  // "HOST:PORT", with `tls` or without, or "unix:PATH", always without; of a
  // host's addresses the first that answers within `timeout`. Unavailable: none
  // does.
  static absl::StatusOr<ListenerProbe> Create(const std::string& address,
                                              absl::Duration timeout,
                                              bool tls = false);

  // Connects, says hello and waits for a byte or the connection's end. Where
  // only the kernel takes connections and no process accepts them, no byte
  // comes. Unavailable says what failed. Thread-safe.
  absl::Status Try(absl::Duration timeout) const;

 private:
  ListenerProbe() = default;

  sockaddr_storage address_ = {};
  socklen_t length_ = 0;
  std::string hello_;
};

}  // namespace txl
