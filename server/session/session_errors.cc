#include "server/session/session_errors.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace txl {
namespace {

absl::Status Error(absl::StatusCode code, absl::string_view reason,
                   absl::string_view message,
                   std::optional<absl::Duration> retry = std::nullopt,
                   std::optional<int64_t> position = std::nullopt) {
  ErrorDetails details;
  details.reason = std::string(reason);
  details.retry = retry;
  if (position) details.metadata["position"] = absl::StrCat(*position);
  return MakeError(code, message, details);
}

}  // namespace

absl::Status SessionUnknownError() {
  return Error(absl::StatusCode::kNotFound, "SESSION_UNKNOWN",
               "there is no session of this id");
}

absl::Status SessionExpiredError() {
  return Error(absl::StatusCode::kNotFound, "SESSION_EXPIRED",
               "the session's time-to-live has passed");
}

absl::Status SessionEvictedError() {
  return Error(absl::StatusCode::kNotFound, "SESSION_EVICTED",
               "the session was empty and made room for others");
}

absl::Status SessionExistsError() {
  return Error(absl::StatusCode::kAlreadyExists, "SESSION_EXISTS",
               "there is already a session of this id");
}

absl::Status SessionBusyError(absl::Duration retry) {
  return Error(absl::StatusCode::kAborted, "SESSION_BUSY",
               "another turn of this session is running", retry);
}

absl::Status SessionDeletedError() {
  return Error(absl::StatusCode::kAborted, "SESSION_DELETED",
               "the session was deleted during the turn");
}

absl::Status SessionMovedError(int64_t position) {
  return Error(absl::StatusCode::kAborted, "SESSION_MOVED",
               "another server went on with the session", absl::ZeroDuration(),
               position);
}

absl::Status MovedError(const SessionClaim& claim) {
  const int64_t to = claim.moved_to.load(std::memory_order_acquire);
  return to == SessionClaim::kGone ? SessionDeletedError()
                                   : SessionMovedError(to);
}

absl::Status SupersededError() {
  return Error(absl::StatusCode::kAborted, "SUPERSEDED",
               "the same request came again and took over");
}

absl::Status OtherRequestError() {
  return FieldError("request_id", "was given to another request");
}

absl::Status ReplayEvictedError(int64_t position) {
  return Error(absl::StatusCode::kAborted, "REPLAY_EVICTED",
               "the turn is done, but its tokens are no longer kept",
               std::nullopt, position);
}

absl::Status PositionMismatchError(int64_t position, int64_t expected) {
  return Error(absl::StatusCode::kAborted, "POSITION_MISMATCH",
               absl::StrCat("the session is at position ", position,
                            ", expected was ", expected),
               std::nullopt, position);
}

absl::Status SessionDamagedError(absl::string_view what) {
  return Error(absl::StatusCode::kDataLoss, "SESSION_DAMAGED", what);
}

absl::Status OtherModelError(absl::string_view what) {
  return Error(absl::StatusCode::kFailedPrecondition, "MODEL_MISMATCH", what);
}

absl::Status NoSessionMemoryError(absl::string_view what,
                                  absl::Duration retry) {
  return Error(absl::StatusCode::kResourceExhausted, "NO_SESSION_MEMORY", what,
               retry);
}

}  // namespace txl
