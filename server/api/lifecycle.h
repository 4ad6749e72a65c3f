#pragma once

// What the server as a whole is doing, as every call sees it.

#include <atomic>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/metrics/server_status.h"

namespace txl {

// Thread-safe. Phases only go forward.
class Lifecycle {
 public:
  ServerPhase phase() const { return phase_.load(std::memory_order_acquire); }
  // No effect once draining.
  void SetReady();
  void SetDraining();
  // UNAVAILABLE with NOT_READY or DRAINING; OK when ready.
  absl::Status CheckServing() const;

  // Administration drains a tenant, or takes its turns on again.
  void SetTenantDraining(const std::string& tenant, bool draining)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::set<std::string> draining_tenants() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Checks a new turn: UNAVAILABLE, TENANT_DRAINING if its tenant drains.
  absl::Status CheckTenant(const std::string& tenant) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::atomic<ServerPhase> phase_{ServerPhase::kStarting};
  mutable absl::Mutex mutex_;
  std::set<std::string> draining_tenants_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace txl
