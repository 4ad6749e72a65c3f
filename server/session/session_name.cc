#include "server/session/session_name.h"

#include <openssl/rand.h>

#include <cstddef>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/base/error.h"
#include "server/base/plain_name.h"

namespace txl {

SessionName::SessionName(std::string tenant, std::string id)
    : tenant_(std::move(tenant)), id_(std::move(id)) {}

SessionName::SessionName(const char* id) : id_(id) {}

SessionName SessionName::OfDefaultTenant(std::string id) {
  return SessionName(kDefaultTenant, std::move(id));
}

std::string SessionName::text() const {
  return tenant_ == kDefaultTenant ? id_ : absl::StrCat(tenant_, "/", id_);
}

SessionName SessionName::OfText(absl::string_view text) {
  const size_t border = text.find('/');
  if (border == absl::string_view::npos) {
    return OfDefaultTenant(std::string(text));
  }
  return SessionName(std::string(text.substr(0, border)),
                     std::string(text.substr(border + 1)));
}

namespace {

constexpr size_t kRandomBytes = 16;

}  // namespace

absl::Status ValidateId(absl::string_view field, absl::string_view id) {
  if (IsPlainName(id)) return absl::OkStatus();
  // The message does not repeat the id: it may be long or not printable.
  return FieldError(field, "must be 1 to 64 characters of A-Z a-z 0-9 _ -");
}

absl::Status ValidateSessionId(absl::string_view session_id) {
  return ValidateId("session_id", session_id);
}

absl::StatusOr<std::string> RandomSessionId() {
  std::string bytes(kRandomBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()),
                 static_cast<int>(bytes.size())) != 1) {
    return absl::InternalError("no random bytes for a session id");
  }
  return absl::BytesToHexString(bytes);
}

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
