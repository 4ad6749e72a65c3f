#include "server/tenants_watch.h"

#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/base/log.h"
#include "server/quota/tenants_file.h"

namespace txl {
namespace {

std::string VersionOf(const std::string& path) {
  struct stat file = {};
  if (stat(path.c_str(), &file) != 0) return "";
  return absl::StrCat(file.st_dev, " ", file.st_ino, " ", file.st_size, " ",
                      file.st_mtim.tv_sec, " ", file.st_mtim.tv_nsec);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TenantsWatch>> TenantsWatch::Start(
    std::string path, Tenants* tenants, Clock* clock, absl::Duration interval) {
  std::unique_ptr<TenantsWatch> watch(
      new TenantsWatch(std::move(path), tenants, clock));
  {
    absl::MutexLock lock(&watch->mutex_);
    TXL_RETURN_IF_ERROR(watch->Read());
  }
  watch->periodic_ = std::make_unique<Periodic>(
      interval, [kept = watch.get()] { kept->LookAgain(); });
  return watch;
}

absl::Status TenantsWatch::Read() {
  version_ = VersionOf(path_);  // first: a change meanwhile is seen later
  TXL_ASSIGN_OR_RETURN(const TenantTable table, ReadTenants(path_));
  tenants_->SetLimits(table, clock_->Monotonic());
  return absl::OkStatus();
}

void TenantsWatch::Reload() {
  absl::MutexLock lock(&mutex_);
  ReloadLocked();
}

void TenantsWatch::LookAgain() {
  absl::MutexLock lock(&mutex_);
  if (VersionOf(path_) != version_) ReloadLocked();
}

void TenantsWatch::ReloadLocked() {
  const absl::Status status = Read();
  if (status.ok()) {
    Log(LogSeverity::kInfo, "tenants", {{"file", path_}});
  } else {
    Log(LogSeverity::kWarning, "tenants_kept",
        {{"file", path_}, {"error", status.message()}});
  }
}

}  // namespace txl
