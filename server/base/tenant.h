#pragma once

// Whose something is. Tenants share a server and know nothing of each other.

namespace txl {

// Everybody's, where nobody has to say who they are.
inline constexpr char kDefaultTenant[] = "default";

}  // namespace txl
