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
// ABORTED, SUPERSEDED: the same request came again and goes on.
// Another server went on with it, and it holds so many tokens there.
absl::Status SessionMovedError(int64_t position);
// Of a claim that has moved: that, or SESSION_DELETED.
absl::Status MovedError(const SessionClaim& claim);
absl::Status SupersededError();
// FIELD_INVALID request_id.
absl::Status OtherRequestError();
// ABORTED, REPLAY_EVICTED with the session's position in the metadata.
absl::Status ReplayEvictedError(int64_t position);
// ABORTED, POSITION_MISMATCH with the session's position in the metadata.
absl::Status PositionMismatchError(int64_t position, int64_t expected);
// `what` is full: "the server holds its 10 sessions", ...
absl::Status NoSessionMemoryError(absl::string_view what, absl::Duration retry);

}  // namespace txl
