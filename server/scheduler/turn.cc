#include "server/scheduler/turn.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "model/sampling/sampler.h"
#include "server/base/error.h"
#include "server/session/session_errors.h"

namespace txl {
namespace {

ErrorDetails Reason(absl::string_view reason) {
  ErrorDetails details;
  details.reason = std::string(reason);
  return details;
}

ErrorDetails RetryReason(absl::string_view reason, absl::Duration retry) {
  ErrorDetails details = Reason(reason);
  details.retry = retry;
  return details;
}

}  // namespace

absl::Status TurnCancelled() {
  return MakeError(absl::StatusCode::kCancelled, "the call was cancelled",
                   Reason("CANCELLED"));
}

absl::Status TurnDeadlineExceeded() {
  return MakeError(absl::StatusCode::kDeadlineExceeded,
                   "the call's deadline has passed",
                   Reason("DEADLINE_EXCEEDED"));
}

absl::Status DeadlineUnreachable() {
  return MakeError(absl::StatusCode::kDeadlineExceeded,
                   "the call's deadline would pass before the turn begins, by "
                   "the turns that wait and the rate of the last seconds",
                   Reason("DEADLINE_UNREACHABLE"));
}

absl::Status TurnTooLong(absl::Duration longest_turn) {
  return MakeError(
      absl::StatusCode::kDeadlineExceeded,
      absl::StrCat("the turn has taken longer than the server's longest_turn, ",
                   absl::FormatDuration(longest_turn)),
      Reason("DEADLINE_EXCEEDED"));
}

absl::Status ClientTooSlow() {
  return MakeError(absl::StatusCode::kResourceExhausted,
                   "the client did not read its stream, or too slowly",
                   Reason("CLIENT_TOO_SLOW"));
}

absl::Status ServerDraining() {
  return MakeError(absl::StatusCode::kUnavailable,
                   "the server is shutting down", Reason("DRAINING"));
}

absl::Status QueueFull(absl::Duration retry) {
  return MakeError(absl::StatusCode::kResourceExhausted,
                   "too much work is waiting",
                   RetryReason("QUEUE_FULL", retry));
}

absl::Status QueuedTooLong(absl::Duration limit, absl::Duration retry) {
  return MakeError(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat("the turn waited for ", absl::FormatDuration(limit),
                   " and too much work is still before it"),
      RetryReason("QUEUE_FULL", retry));
}

absl::Status NoSessionMemory(absl::Duration retry) {
  return NoSessionMemoryError("no memory for another active session", retry);
}

absl::Status ResumeMismatch() {
  return MakeError(absl::StatusCode::kAborted,
                   "the tokens received are not those of the turn",
                   Reason("RESUME_MISMATCH"));
}

absl::Status StepFailed(absl::string_view what, const absl::Status& cause) {
  return MakeError(absl::StatusCode::kInternal,
                   absl::StrCat(what, ": ", cause.message()),
                   Reason("STEP_FAILED"));
}

absl::Status RowFailed(const SamplingParams& sampling,
                       const absl::Status& cause) {
  if (cause == NothingToSample()) {
    for (const auto& [restricts, field] :
         {std::pair(!sampling.allowed_token_ids.empty(), "allowed_token_ids"),
          std::pair(sampling.follow_kinds, "follow_kinds"),
          std::pair(sampling.min_tokens > 0, "min_tokens")}) {
      if (!restricts) continue;
      return FieldError(absl::StrCat("sampling.", field), cause.message());
    }
  }
  return StepFailed("the step failed", cause);
}

std::optional<absl::Status> EndOf(const Turn& turn, absl::Duration submitted,
                                  absl::Duration longest_turn,
                                  absl::Duration now) {
  if (turn.lease.delete_requested()) return SessionDeletedError();
  if (const auto moved = turn.lease.moved()) return moved;
  if (turn.lease.superseded()) return SupersededError();
  if (turn.cancel != nullptr) {
    switch (turn.cancel->why()) {
      case CancelToken::Why::kNone:
        break;
      case CancelToken::Why::kCancelled:
        return TurnCancelled();
      case CancelToken::Why::kDeadline:
        return TurnDeadlineExceeded();
    }
  }
  if (turn.deadline.has_value() && now >= *turn.deadline) {
    return TurnDeadlineExceeded();
  }
  if (now - submitted >= turn.longest) return TurnOverQuota(turn.longest);
  if (now - submitted >= longest_turn) return TurnTooLong(longest_turn);
  return std::nullopt;
}

}  // namespace txl
