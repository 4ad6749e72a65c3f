#include "server/api/lifecycle.h"

#include "server/base/error.h"

namespace txl {

void Lifecycle::SetReady() {
  ServerPhase expected = ServerPhase::kStarting;
  phase_.compare_exchange_strong(expected, ServerPhase::kReady);
}

void Lifecycle::SetDraining() { phase_.store(ServerPhase::kDraining); }

absl::Status Lifecycle::CheckServing() const {
  ErrorDetails details;
  switch (phase()) {
    case ServerPhase::kReady:
      return absl::OkStatus();
    case ServerPhase::kStarting:
      details.reason = "NOT_READY";
      details.retry = absl::Seconds(1);
      return MakeError(absl::StatusCode::kUnavailable, "the server is starting",
                       details);
    case ServerPhase::kDraining:
      break;
  }
  details.reason = "DRAINING";
  return MakeError(absl::StatusCode::kUnavailable, "the server is draining",
                   details);
}

void Lifecycle::SetTenantDraining(const std::string& tenant, bool draining) {
  absl::MutexLock lock(&mutex_);
  if (draining) {
    draining_tenants_.insert(tenant);
  } else {
    draining_tenants_.erase(tenant);
  }
}

std::set<std::string> Lifecycle::draining_tenants() const {
  absl::ReaderMutexLock lock(&mutex_);
  return draining_tenants_;
}

absl::Status Lifecycle::CheckTenant(const std::string& tenant) const {
  absl::ReaderMutexLock lock(&mutex_);
  if (draining_tenants_.count(tenant) == 0) return absl::OkStatus();
  ErrorDetails details;
  details.reason = "TENANT_DRAINING";
  details.retry = absl::Seconds(1);
  return MakeError(absl::StatusCode::kUnavailable,
                   "the server takes on no new turns of the tenant", details);
}

}  // namespace txl
