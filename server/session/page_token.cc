#include "server/session/page_token.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/base/error.h"
#include "server/session/session_id.h"

namespace txl {
namespace {

// Names the content, so that a token of another kind is not taken for one.
constexpr absl::string_view kPrefix = "after:";

}  // namespace

std::string EncodePageToken(absl::string_view last_id) {
  return absl::WebSafeBase64Escape(absl::StrCat(kPrefix, last_id));
}

absl::StatusOr<std::string> DecodePageToken(absl::string_view page_token) {
  std::string content;
  if (absl::WebSafeBase64Unescape(page_token, &content)) {
    absl::string_view last_id = content;
    // Base64 has several spellings of the same bytes; one is ours.
    if (absl::ConsumePrefix(&last_id, kPrefix) &&
        ValidateSessionId(last_id).ok() &&
        EncodePageToken(last_id) == page_token) {
      return std::string(last_id);
    }
  }
  return FieldError("page_token",
                    "not a next_page_token of an earlier response");
}

}  // namespace txl
