#pragma once

// The store's refusals, with the codes and reasons of the public API. No
// message repeats an id: messages end up in logs.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/session/session_claim.h"

namespace txl {

absl::Status SessionUnknownError();
absl::Status SessionExpiredError();
absl::Status SessionEvictedError();
absl::Status SessionExistsError();
absl::Status SessionBusyError(absl::Duration retry);
absl::Status SessionDeletedError();
// Another server went on with it, and it holds so many tokens there.
absl::Status SessionMovedError(int64_t position);
// Error for a claim that is no longer valid: SESSION_MOVED or SESSION_DELETED.
absl::Status MovedError(const SessionClaim& claim);
// ABORTED, SUPERSEDED: the same request came again and goes on.
absl::Status SupersededError();
// FIELD_INVALID request_id.
absl::Status OtherRequestError();
// ABORTED, REPLAY_EVICTED with the session's position in the metadata.
absl::Status ReplayEvictedError(int64_t position);
// ABORTED, POSITION_MISMATCH with the session's position in the metadata.
absl::Status PositionMismatchError(int64_t position, int64_t expected);
// DATA_LOSS, SESSION_DAMAGED, and FAILED_PRECONDITION, MODEL_MISMATCH.
absl::Status SessionDamagedError(
    absl::string_view what = "what is stored of the session is damaged");
absl::Status OtherModelError(
    absl::string_view what = "the session is of another model");
// `what` is full: "the server holds its 10 sessions", ...
absl::Status NoSessionMemoryError(absl::string_view what, absl::Duration retry);

}  // namespace txl
