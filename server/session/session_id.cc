#include "server/session/session_id.h"

#include <openssl/rand.h>

#include <cstddef>

#include "absl/strings/escaping.h"
#include "server/base/error.h"
#include "server/base/plain_name.h"

namespace txl {
namespace {

constexpr size_t kRandomBytes = 16;

}  // namespace

absl::Status ValidateSessionId(absl::string_view session_id) {
  // The message does not repeat the id: it may be long or not printable.
  if (!IsPlainName(session_id)) {
    return FieldError("session_id",
                      "a session id is 1 to 64 characters of A-Z a-z 0-9 _ -");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> RandomSessionId() {
  std::string bytes(kRandomBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()),
                 static_cast<int>(bytes.size())) != 1) {
    return absl::InternalError("no random bytes for a session id");
  }
  return absl::BytesToHexString(bytes);
}

}  // namespace txl
