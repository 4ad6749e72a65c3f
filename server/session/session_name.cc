#include "server/session/session_name.h"

#include <utility>

#include "absl/strings/str_cat.h"

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

}  // namespace txl
