#include "server/http/http_message.h"

namespace txl {

std::string HttpDate(absl::Time now) {
  return absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", now,
                          absl::UTCTimeZone());
}

const std::string& HttpRequest::header(
    const std::string& lower_case_name) const {
  static const std::string kNone;
  const auto found = headers.find(lower_case_name);
  return found == headers.end() ? kNone : found->second;
}

}  // namespace txl
