#include "server/tenants_watch.h"

#include <utility>

#include "model/base/status_macros.h"
#include "server/base/text_file.h"
#include "server/quota/tenants.h"

namespace txl {

absl::StatusOr<std::unique_ptr<TenantsWatch>> TenantsWatch::Start(
    std::string path, Tenants* tenants, Clock* clock, LineFile* audit,
    absl::Duration interval) {
  std::unique_ptr<TenantsWatch> watch(
      new TenantsWatch(std::move(path), tenants, clock, audit));
  {
    absl::MutexLock lock(&watch->mutex_);
    TXL_RETURN_IF_ERROR(watch->Read());
  }
  watch->periodic_ = std::make_unique<Periodic>(
      interval, [kept = watch.get()] { kept->LookAgain(); });
  return watch;
}

absl::Status TenantsWatch::Read() {
  version_ = FileVersion(path_);  // first: a change meanwhile is seen later
  TXL_ASSIGN_OR_RETURN(TenantTable table, ReadTenants(path_));
  tenants_->SetLimits(table, clock_->Monotonic());
  const TenantTable before = std::exchange(table_, std::move(table));
  if (removed_ == nullptr) return absl::OkStatus();
  for (const auto& [tenant, limits] : before) {
    if (table_.count(tenant) == 0) removed_(tenant);
  }
  return absl::OkStatus();
}

void TenantsWatch::OnRemoved(
    std::function<void(const std::string& tenant)> removed) {
  absl::MutexLock lock(&mutex_);
  removed_ = std::move(removed);
}

absl::Status TenantsWatch::Reload() {
  absl::MutexLock lock(&mutex_);
  return ReloadLocked();
}

void TenantsWatch::LookAgain() {
  absl::MutexLock lock(&mutex_);
  if (FileVersion(path_) != version_) ReloadLocked().IgnoreError();
}

absl::Status TenantsWatch::ReloadLocked() {
  const absl::Status status = Read();
  if (status.ok()) {
    LogAndAudit(audit_, LogSeverity::kInfo, "tenants", {{"file", path_}});
  } else {
    LogAndAudit(audit_, LogSeverity::kWarning, "tenants_kept",
                {{"file", path_}, {"error", status.message()}});
  }
  return status;
}

}  // namespace txl
