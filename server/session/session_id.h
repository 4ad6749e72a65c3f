#pragma once

// Names of sessions.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

// `[A-Za-z0-9_-]{1,64}`; else FIELD_INVALID session_id.
absl::Status ValidateSessionId(absl::string_view session_id);

// 128 bits of OpenSSL's generator as 32 hexadecimal digits: whoever does not
// know the id cannot guess it. Internal when the generator has no entropy.
absl::StatusOr<std::string> RandomSessionId();

}  // namespace txl
