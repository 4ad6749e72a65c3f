#pragma once

// Which session a request is about.

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/http/http_message.h"

namespace txl {

// The session that body and headers (x-txl-session, X-Session-ID) name, ""
// where none does. FIELD_INVALID where two differ.
absl::StatusOr<std::string> NamedSession(
    const std::optional<std::string>& of_body, const HttpRequest& http);

}  // namespace txl
