#pragma once

#include <functional>

#include "absl/status/statusor.h"

namespace txl {

class SessionLease;  // session_store.h

// Gets a session that somebody else held, or says why it does not.
using LeaseCallback = std::function<void(absl::StatusOr<SessionLease>)>;

}  // namespace txl
