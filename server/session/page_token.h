#pragma once

// Where the next page of ListSessions starts. Opaque to clients, so that its
// content can change.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

// A token for the page after the session `last_id`.
std::string EncodePageToken(absl::string_view last_id);

// The id that EncodePageToken was given; anything that it did not make is
// FIELD_INVALID page_token.
absl::StatusOr<std::string> DecodePageToken(absl::string_view page_token);

}  // namespace txl
