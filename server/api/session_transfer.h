#pragma once

// SessionService.ExportSession and ImportSession: sessions as files.

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/api/api_call.h"
#include "server/api/service_context.h"

namespace txl {

// Bytes of an ExportSessionResponse's chunk at most.
inline constexpr int64_t kExportChunkBytes = 256 << 10;

// Methods (methods.h). An import is a stream of requests.
void ExportSession(const TurnContext& service,
                   const std::shared_ptr<ApiCall>& call);
void ImportSession(const TurnContext& service,
                   const std::shared_ptr<ApiCall>& call);

// Saves the state that a session has in a slot, for what goes on from there.

// Calls `then` once, now or on the callback thread: with OK when the session's
// state is an image or could not become one, in which case its tokens are fed
// again later; with CANCELLED or DEADLINE_EXCEEDED when no client waits for the
// call any more. The session is idle again by then, unless somebody else runs a
// turn on it. `position`: of the state that is wanted; absent: all tokens;
// nothing is saved when the session holds more or fewer. Takes the call over
// meanwhile. `service` outlives it.
void SaveState(const TurnContext& service, const std::shared_ptr<ApiCall>& call,
               const SessionName& session, std::optional<int64_t> position,
               std::function<void(const absl::Status&)> then);

// Saves the state of an idle session and takes the session out of its slot.
// `then` hears whether it was in one. Errors: STEP_FAILED, and what
// SessionStore::Acquire and Scheduler::Submit return.
void MoveOutState(const TurnContext& service,
                  const std::shared_ptr<ApiCall>& call,
                  const SessionName& session,
                  std::function<void(const absl::StatusOr<bool>&)> then);

}  // namespace txl
