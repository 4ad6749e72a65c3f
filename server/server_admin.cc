// Server: how it is administered.

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/log.h"
#include "server/server.h"

namespace txl {

absl::Status Server::StartAdmin() {
  const std::string listen =
      AdminAddress(flags_.admin_listen, flags_.store.data_dir);
  if (listen.empty()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<AdminListener>> admin = AdminListener::Start(
      listen, MakeAdministration(), context_, certificates_.get());
  if (admin.ok()) {
    admin_ = *std::move(admin);
    return absl::OkStatus();
  }
  if (flags_.admin_listen != kAdminAuto) {
    return absl::Status(
        admin.status().code(),
        absl::StrCat("--admin-listen: ", admin.status().message()));
  }
  // A folder that can have no socket keeps nobody's server from starting.
  Log(LogSeverity::kWarning, "no_administration",
      {{"error", admin.status().message()}});
  return absl::OkStatus();
}

Administration Server::MakeAdministration() {
  Administration administration;
  administration.reload = [this] { return Reload(); };
  administration.drain = [this] { return RequestDrain(); };
  administration.status = [this] { return grpc_->Status(); };
  return administration;
}

std::string Server::admin_address() const {
  return admin_ == nullptr ? "" : admin_->address();
}

void Server::OnDrainRequest(std::function<void()> drain) {
  absl::MutexLock lock(&drain_mutex_);
  drain_ = std::move(drain);
}

bool Server::RequestDrain() {
  absl::MutexLock lock(&drain_mutex_);
  if (drain_ == nullptr) return false;
  drain_();
  return true;
}

std::vector<ReloadedFile> Server::Reload() {
  // First: what is read below is written to the new files.
  std::vector<ReloadedFile> files = records_->Reopen();
  if (keys_ != nullptr) {
    files.push_back({"keys", flags_.keys, keys_->Reload()});
  }
  if (tenants_watch_ != nullptr) {
    files.push_back({"tenants", flags_.tenants, tenants_watch_->Reload()});
  }
  if (certificates_ != nullptr) {
    files.push_back(
        {"tls-cert", flags_.tls.certificate, certificates_->Look()});
  }
  return files;
}

}  // namespace txl
