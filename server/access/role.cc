#include "server/access/role.h"

#include "absl/strings/match.h"

namespace txl {

const char* RoleName(Role role) {
  switch (role) {
    case Role::kUser:
      return "user";
    case Role::kScorer:
      return "scorer";
    case Role::kMetrics:
      return "metrics";
    case Role::kAdmin:
      return "admin";
  }
  return "";
}

std::optional<Role> ParseRole(absl::string_view name) {
  for (const Role role : kAllRoles) {
    if (absl::EqualsIgnoreCase(name, RoleName(role))) return role;
  }
  return std::nullopt;
}

}  // namespace txl
