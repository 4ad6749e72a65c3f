#pragma once

// Ends a process whose own listener is deaf, so that it is started again: after
// an accept that failed for want of file descriptors gRPC 1.51 accepts no
// connection ever again (CVE-2023-4785).

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/base/periodic.h"

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

}  // namespace txl
