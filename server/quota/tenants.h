#pragma once

// All tenants: those of the file of --tenants, and whoever else calls.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/quota/tenant_account.h"
#include "server/quota/tenant_limits.h"

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

  // Of all that are in the file or have called, by name.
  std::vector<TenantUse> Use(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::function<int32_t(const std::string&)> add_counts_;
  absl::Mutex mutex_;
  const int32_t other_counts_;
  // Never erased: turns point to them.
  std::map<std::string, std::unique_ptr<TenantAccount>> accounts_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace txl
