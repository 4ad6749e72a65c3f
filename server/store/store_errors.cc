#include "server/store/store_errors.h"

#include "absl/time/time.h"
#include "server/base/error.h"

namespace txl {

absl::Status SessionDamagedError() {
  ErrorDetails details;
  details.reason = "SESSION_DAMAGED";
  return MakeError(absl::StatusCode::kDataLoss,
                   "what is stored of the session is damaged", details);
}

absl::Status OtherModelError() {
  ErrorDetails details;
  details.reason = "MODEL_MISMATCH";
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   "the session is of another model", details);
}

absl::Status StoreFullError() {
  ErrorDetails details;
  details.reason = "STORE_FULL";
  details.retry = absl::Seconds(5);
  return MakeError(absl::StatusCode::kResourceExhausted,
                   "the store of sessions is full", details);
}

absl::Status StoreFailedError() {
  ErrorDetails details;
  details.reason = "STORE_UNAVAILABLE";
  details.retry = absl::Seconds(1);
  return MakeError(absl::StatusCode::kUnavailable,
                   "the store of sessions has failed", details);
}

}  // namespace txl
