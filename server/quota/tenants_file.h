#pragma once

// The file of --tenants:
//
//   [tenant.research]
//   weight = 2
//   turns = 8
//   sessions = 1000
//   bytes = "512MiB"
//   tokens_in_per_minute = 60000
//   tokens_out_per_minute = 12000
//   calls_per_second = 50
//   longest_turn = "10m"

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/quota/tenant_limits.h"

namespace txl {

using TenantTable = std::map<std::string, TenantLimits>;

// Each has counters of its own in the metrics.
inline constexpr size_t kMostTenants = 1000;
inline constexpr int64_t kMostTenantsFileBytes = 1 << 20;

// Of the file's text; `path` is named in errors, with the line or the key:
// InvalidArgument where it is no TOML, a key is unknown (with the nearest
// name), a value has another type or is out of range (weight in [0.001,
// 1000000], longest_turn above 0, all others whole and at least 1; bytes also
// with a unit, in powers of 1024), a name is
// not 1 to 64 of [A-Za-z0-9_-], or is "other", or there are more than
// kMostTenants.
absl::StatusOr<TenantTable> ParseTenants(absl::string_view text,
                                         const std::string& path);
absl::StatusOr<TenantTable> ReadTenants(const std::string& path);

}  // namespace txl
