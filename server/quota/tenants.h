#pragma once

// All tenants: those in the file of --tenants, and all others that call.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/quota/tenant_account.h"

namespace txl {

// The name under which all tenants that are not in the file are counted.
inline constexpr char kOtherTenants[] = "other";

// Thread-safe. Accounts live as long as this does.
class Tenants {
 public:
  // `add_counts` makes counters for a name that had none and returns their
  // place; the first call is for kOtherTenants.
  explicit Tenants(std::function<int32_t(const std::string&)> add_counts);

  // Another file: tenants that it does not have lose their limits, what
  // everybody has taken stays taken. `now` is Clock::Monotonic here and below.
  void SetLimits(const std::map<std::string, TenantLimits>& limits,
                 absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

  // The tenant's account; one that is not in the file has no limits, and weight
  // 1.
  TenantAccount* Find(const std::string& name, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Use of all tenants that are in the file or have called, by name.
  std::vector<TenantUse> Use(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::function<int32_t(const std::string&)> add_counts_;
  absl::Mutex mutex_;
  const int32_t other_counts_;
  // Never erased: turns point to them.
  std::map<std::string, std::unique_ptr<TenantAccount>> accounts_
      ABSL_GUARDED_BY(mutex_);
};

// The file of --tenants:
//
//   [tenant.research]
//   weight = 2
//   turns = 8
//   sessions = 1000
//   bytes = "512MiB"
//   tokens_in_per_minute = 60000
//   count_cached_tokens = true
//   tokens_out_per_minute = 12000
//   calls_per_second = 50
//   longest_turn = "10m"

using TenantTable = std::map<std::string, TenantLimits>;

// Each has counters of its own in the metrics.
inline constexpr size_t kMostTenants = 1000;
inline constexpr int64_t kMostTenantsFileBytes = 1 << 20;

// Parses the file's text. Errors name `path` with the line or the key.
// InvalidArgument if it is not TOML, a key is unknown (with the nearest name),
// a value has another type or is out of range (weight in [0.001, 1000000],
// longest_turn above 0, count_cached_tokens true or false, all others whole and
// at least 1; bytes also with a unit, in powers of 1024), a name is not 1 to 64
// of [A-Za-z0-9_-], or is "other", or there are more than kMostTenants.
absl::StatusOr<TenantTable> ParseTenants(absl::string_view text,
                                         const std::string& path);
absl::StatusOr<TenantTable> ReadTenants(const std::string& path);

}  // namespace txl
