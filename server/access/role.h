#pragma once

// What a key or a certificate allows.

#include <initializer_list>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "server/base/plain_name.h"

namespace txl {

enum class Role {
  kUser,     // every method that concerns one's own sessions
  kScorer,   // scores and tokenises, has no sessions
  kMetrics,  // reads status and metrics
  kAdmin,    // everything
};

inline constexpr Role kAllRoles[] = {Role::kUser, Role::kScorer, Role::kMetrics,
                                     Role::kAdmin};

// "user", as keys files and commands say it.
inline const char* RoleName(Role role) {
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
// In any case of letters. Absent: no role has this name.
inline std::optional<Role> ParseRole(absl::string_view name) {
  for (const Role role : kAllRoles) {
    if (absl::EqualsIgnoreCase(name, RoleName(role))) return role;
  }
  return std::nullopt;
}

// Who may use something. By default no one: what has no rule is refused.
class RoleSet {
 public:
  constexpr RoleSet() = default;
  constexpr RoleSet(std::initializer_list<Role> roles) {
    for (const Role role : roles) bits_ |= Bit(role);
  }
  constexpr bool Has(Role role) const { return (bits_ & Bit(role)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }

 private:
  static constexpr unsigned Bit(Role role) {
    return 1U << static_cast<unsigned>(role);
  }
  unsigned bits_ = 0;
};

// The rules of methods and of HTTP's paths.
inline constexpr RoleSet kUsers = {Role::kUser, Role::kAdmin};
inline constexpr RoleSet kScorers = {Role::kScorer, Role::kUser, Role::kAdmin};
inline constexpr RoleSet kWatchers = {Role::kMetrics, Role::kUser,
                                      Role::kAdmin};
inline constexpr RoleSet kAdmins = {Role::kAdmin};
inline constexpr RoleSet kAnyKey = {Role::kUser, Role::kScorer, Role::kMetrics,
                                    Role::kAdmin};

// Who makes a call. Where callers need not identify themselves, each is the
// tenant "default" and may do everything, as users may on their own machine.

struct Caller {
  std::string tenant = kDefaultTenant;
  // Name of the key or the certificate. Empty: no identification was required.
  std::string name;
  Role role = Role::kAdmin;
};

}  // namespace txl
