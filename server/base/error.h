#pragma once

// Errors as clients see them: a canonical code, a reason of the public API,
// and what helps to mend it. Carried inside absl::Status as payloads, turned
// into google.rpc details in server/rpc only.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace txl {

struct ErrorDetails {
  std::string reason;                   // "SESSION_BUSY", "FIELD_INVALID", ...
  std::string field;                    // request field, for BadRequest
  std::optional<absl::Duration> retry;  // for RetryInfo
  std::map<std::string, std::string> metadata;
};

absl::Status MakeError(absl::StatusCode code, absl::string_view message,
                       const ErrorDetails& details);

// The details that MakeError attached; empty reason when there are none.
ErrorDetails GetErrorDetails(const absl::Status& status);

// InvalidArgument, FIELD_INVALID, naming the field.
absl::Status FieldError(absl::string_view field, absl::string_view message);
// InvalidArgument, OVER_LIMIT, naming the field.
absl::Status OverLimitError(absl::string_view field, absl::string_view message);

}  // namespace txl
