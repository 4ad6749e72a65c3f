#pragma once

// Errors as clients see them: a canonical code, a reason of the public API,
// and what helps to mend it. Carried inside absl::Status as payloads; each
// transport turns them into its own form.

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

// What clients are shown of an error: the reason of the details, else the
// code's name; and its text, cut to 512 bytes. An error of code INTERNAL or
// UNKNOWN that carries no reason did not come from the server's own rules: its
// text is not shown.
std::string ReasonOf(const absl::Status& status);
std::string ShownText(const absl::Status& status);

// Cuts valid UTF-8 to at most `bytes` bytes, at the border of a character.
std::string CutUtf8(const std::string& text, size_t bytes);

// InvalidArgument, MALFORMED_MESSAGE.
absl::Status MalformedError(absl::string_view message);
// InvalidArgument, FIELD_INVALID, naming the field.
absl::Status FieldError(absl::string_view field, absl::string_view message);
// InvalidArgument, OVER_LIMIT, naming the field.
absl::Status OverLimitError(absl::string_view field, absl::string_view message);
// ResourceExhausted, QUOTA, with the quota's name as `quota` in the metadata,
// beside what `more` has. `limit`: what the text says behind the name.
absl::Status QuotaError(absl::string_view quota, absl::string_view limit,
                        ErrorDetails more);

}  // namespace txl
