#pragma once

// Saves the state that a session has in a slot, for what goes on from there.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/api/api_call.h"
#include "server/api/service_context.h"

namespace txl {

// Calls `then` once, now or on the callback thread: with OK when the session's
// state is an image or could not become one, in which case its tokens are fed
// again later; with CANCELLED or DEADLINE_EXCEEDED when nobody waits for the
// call any more. The session is idle again by then, unless somebody else runs a
// turn on it. `position`: of the state that is wanted; absent: all tokens;
// nothing is saved when the session holds more or fewer. Takes the call over
// meanwhile. `service` outlives it.
void SaveState(const ServiceContext& service,
               const std::shared_ptr<ApiCall>& call, const SessionName& session,
               std::optional<int64_t> position,
               std::function<void(const absl::Status&)> then);

// The same of an idle session, which leaves its slot, too: `then` hears whether
// it was in one. Errors: those of SessionStore::Acquire and Scheduler::Submit,
// and STEP_FAILED.
void MoveOutState(const ServiceContext& service,
                  const std::shared_ptr<ApiCall>& call,
                  const SessionName& session,
                  std::function<void(const absl::StatusOr<bool>&)> then);

}  // namespace txl
