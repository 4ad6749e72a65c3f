#pragma once

// Who makes a call. Nobody is asked yet: everybody is the tenant "default" and
// may do everything, as on a machine of one's own.

#include <string>

namespace txl {

// What a key or a certificate allows.
enum class Role {
  kUser,     // every method that concerns one's own sessions
  kScorer,   // scores and tokenises, has no sessions
  kMetrics,  // reads status and metrics
  kAdmin,    // everything, of every tenant
};

inline constexpr char kDefaultTenant[] = "default";

struct Caller {
  std::string tenant = kDefaultTenant;
  // Of the key or the certificate; empty: nobody had to say who they are.
  std::string name;
  Role role = Role::kAdmin;
};

}  // namespace txl
