#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/error.h"

namespace txl {

// "INVALID_ARGUMENT FIELD_INVALID stop.max_tokens", "NOT_FOUND
// SESSION_UNKNOWN", "OK".
inline std::string Refusal(const absl::Status& status) {
  if (status.ok()) return "OK";
  const ErrorDetails details = GetErrorDetails(status);
  std::string text = absl::StatusCodeToString(status.code());
  text += " " + details.reason;
  if (!details.field.empty()) text += " " + details.field;
  return text;
}

template <typename T>
std::string Refusal(const absl::StatusOr<T>& result) {
  return Refusal(result.status());
}

}  // namespace txl
