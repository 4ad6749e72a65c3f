#include "client/retry_policy.h"

#include <algorithm>

#include "client/call_error.h"

namespace txl {

bool IsRetryable(const absl::Status& status) {
  const CallError error = GetCallError(status);
  if (error.retry_delay.has_value()) return true;
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return true;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kCancelled:
      return error.reason.empty();
    default:
      return false;
  }
}

std::optional<absl::Duration> RetryDelay(const RetryPolicy& policy,
                                         int failures,
                                         const absl::Status& status,
                                         double jitter) {
  if (failures >= policy.max_failures || !IsRetryable(status)) {
    return std::nullopt;
  }
  absl::Duration delay = policy.first_delay;
  for (int i = 1; i < failures && delay < policy.max_delay; ++i) delay *= 2;
  delay = std::min(delay, policy.max_delay) * (1 - jitter / 2);
  const absl::Duration asked =
      GetCallError(status).retry_delay.value_or(absl::ZeroDuration());
  return std::max(delay, asked);
}

}  // namespace txl
