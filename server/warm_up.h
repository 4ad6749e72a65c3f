#pragma once

// One turn of one token before the server says that it serves: a model that
// cannot step is found at start.

#include "absl/status/status.h"
#include "server/scheduler/scheduler.h"
#include "server/session/session_store.h"

namespace txl {

// Blocks until the turn has ended; its error, if any.
absl::Status WarmUp(Scheduler* scheduler, SessionStore* store);

}  // namespace txl
