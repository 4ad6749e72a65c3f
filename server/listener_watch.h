#pragma once

// Ends a process whose own listener is deaf, so that it is started again: after
// an accept that failed for want of file descriptors gRPC 1.51 accepts no
// connection ever again (CVE-2023-4785).

#include <sys/socket.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/base/task_thread.h"

namespace txl {

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
