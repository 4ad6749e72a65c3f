#include "server/http/named_session.h"

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace txl {

absl::StatusOr<std::string> NamedSession(
    const std::optional<std::string>& of_body, const HttpRequest& http) {
  std::string session = of_body.value_or("");
  for (const char* name : {"x-txl-session", "x-session-id"}) {
    const std::string& value = http.header(name);
    if (value.empty()) continue;
    if (!session.empty() && session != value) {
      return FieldError("session_id",
                        absl::StrCat("the header ", name, " names another"));
    }
    session = value;
  }
  return session;
}

}  // namespace txl
