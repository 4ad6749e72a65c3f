#pragma once

// Who makes a call. Where nobody is asked everybody is the tenant "default" and
// may do everything, as on a machine of one's own.

#include <string>

#include "server/access/role.h"
#include "server/base/tenant.h"

namespace txl {

struct Caller {
  std::string tenant = kDefaultTenant;
  // Of the key or the certificate; empty: nobody had to say who they are.
  std::string name;
  Role role = Role::kAdmin;
};

}  // namespace txl
