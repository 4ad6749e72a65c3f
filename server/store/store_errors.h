#pragma once

// What clients are told of the store of sessions.

#include "absl/status/status.h"

namespace txl {

absl::Status SessionDamagedError();  // DATA_LOSS, SESSION_DAMAGED
absl::Status OtherModelError();      // FAILED_PRECONDITION, MODEL_MISMATCH
absl::Status StoreFullError();       // RESOURCE_EXHAUSTED, STORE_FULL
absl::Status StoreFailedError();     // UNAVAILABLE, STORE_UNAVAILABLE

}  // namespace txl
