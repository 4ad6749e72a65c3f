#include "client/retry_policy.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "client/call_error.h"

namespace txl {
namespace {

// gRPC's own words for a call that ends so again until somebody changes
// something: an HTTP status of a proxy, or a port that is not gRPC's.
bool IsLasting(absl::string_view message) {
  if (absl::StrContains(message, "http1.x server")) return true;
  constexpr absl::string_view kWords = "http2 header with status: ";
  const size_t found = message.find(kWords);
  int code = 0;
  if (found == absl::string_view::npos ||
      !absl::SimpleAtoi(message.substr(found + kWords.size()), &code)) {
    return false;
  }
  // Too slow, too early and too often may pass.
  return (code / 100 == 4 && code != 408 && code != 425 && code != 429) ||
         code == 501 || code == 505;
}

}  // namespace

bool IsRetryable(const absl::Status& status) {
  const CallError error = GetCallError(status);
  if (error.retry_delay.has_value()) return true;
  if (error.reason.empty() && IsLasting(status.message())) return false;
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
