#pragma once

// When to send a call again, and when not.

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace txl {

struct RetryPolicy {
  // Failures in a row, without anything new in between, after which the last
  // one is returned; >= 1. 1: nothing is retried.
  int max_failures = 8;
  // The first wait; each further one is twice as long, up to max_delay.
  absl::Duration first_delay = absl::Milliseconds(100);
  absl::Duration max_delay = absl::Seconds(5);
};

// True for errors that another attempt may not meet: UNAVAILABLE, whatever the
// server gave a RetryInfo with, and calls that broke on the way (INTERNAL,
// UNKNOWN, CANCELLED without the server's reason), but for a port of HTTP/1 and
// an HTTP status of a proxy that says the request is wrong. A call that the
// caller cancelled itself looks like one that broke.
bool IsRetryable(const absl::Status& status);

// How long to wait after the `failures`-th failure in a row (>= 1); nullopt:
// give up. `jitter` in [0, 1) shortens the wait by up to a half, so that many
// clients do not come back at once; a delay that the server asked for is kept.
std::optional<absl::Duration> RetryDelay(const RetryPolicy& policy,
                                         int failures,
                                         const absl::Status& status,
                                         double jitter);

}  // namespace txl
