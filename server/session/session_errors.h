#pragma once

// The store's refusals, with the codes and reasons of the public API. No
// message repeats an id: messages end up in logs.

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace txl {

absl::Status SessionUnknownError();
absl::Status SessionExpiredError();
absl::Status SessionExistsError();
absl::Status SessionBusyError(absl::Duration retry);
// `what` is full: "the server holds its 10 sessions", ...
absl::Status NoSessionMemoryError(absl::string_view what, absl::Duration retry);

}  // namespace txl
