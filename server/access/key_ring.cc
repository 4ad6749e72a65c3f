#include "server/access/key_ring.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/base/status_macros.h"
#include "server/base/digest.h"
#include "server/base/error.h"
#include "server/base/plain_name.h"
#include "server/base/text_file.h"

namespace txl {
namespace {

constexpr absl::string_view kScheme = "Bearer ";

absl::Status Refusal(absl::StatusCode code, const char* reason,
                     absl::string_view message) {
  ErrorDetails details;
  details.reason = reason;
  return MakeError(code, message, details);
}

// Absent: it is none.
std::optional<absl::string_view> KeyOf(absl::string_view authorization) {
  if (!absl::StartsWithIgnoreCase(authorization, kScheme)) return std::nullopt;
  return authorization.substr(kScheme.size());
}

}  // namespace

absl::Status UnauthenticatedError() {
  return Refusal(absl::StatusCode::kUnauthenticated, "UNAUTHENTICATED",
                 "a valid key is needed: authorization: Bearer KEY");
}

absl::Status PermissionDeniedError(Role role, absl::string_view what) {
  return Refusal(
      absl::StatusCode::kPermissionDenied, "PERMISSION_DENIED",
      absl::StrCat("the key's role ", RoleName(role), " may not call ",
                   absl::StripPrefix(what, "txl.v1.")));
}

absl::StatusOr<std::unique_ptr<KeyRing>> KeyRing::Open(const std::string& path,
                                                       Clock* clock,
                                                       LineFile* audit) {
  std::unique_ptr<KeyRing> ring(new KeyRing(path, clock, audit));
  absl::MutexLock lock(&ring->mutex_);
  // Before it is read: a file that comes meanwhile is read by Refresh.
  ring->version_ = FileVersion(path);
  TXL_ASSIGN_OR_RETURN(const std::vector<KeyEntry> keys, ReadKeysFile(path));
  for (const KeyEntry& key : keys) ring->keys_[key.digest] = key;
  return ring;
}

absl::StatusOr<Caller> KeyRing::Identify(const Credentials& credentials) const {
  const std::string& certificate = credentials.certificate;
  if (credentials.authorization.empty() && IsPlainName(certificate)) {
    return Caller{certificate, certificate, Role::kUser};
  }
  if (credentials.authorization.size() != 1) return UnauthenticatedError();
  const auto key = KeyOf(credentials.authorization[0]);
  if (!key.has_value()) return UnauthenticatedError();
  const std::string digest = Sha256Of(*key);
  const absl::Time now = clock_->Now();
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = keys_.find(digest);
  if (found == keys_.end() || found->second.expires <= now) {
    return UnauthenticatedError();
  }
  return found->second.caller;
}

void KeyRing::Refresh() {
  const std::string version = FileVersion(path_);
  {
    absl::ReaderMutexLock lock(&mutex_);
    if (version == version_) return;
  }
  Reload().IgnoreError();
}

absl::Status KeyRing::Reload() {
  std::string version = FileVersion(path_);
  const absl::StatusOr<std::vector<KeyEntry>> read = ReadKeysFile(path_);
  Keys keys;
  if (read.ok()) {
    for (const KeyEntry& key : *read) keys[key.digest] = key;
  }
  {
    absl::MutexLock lock(&mutex_);
    version_ = std::move(version);
    if (read.ok()) keys_.swap(keys);
  }
  if (read.ok()) {
    LogAndAudit(audit_, LogSeverity::kInfo, "keys", {{"keys", read->size()}});
  } else {
    LogAndAudit(audit_, LogSeverity::kWarning, "keys_unchanged",
                {{"error", read.status().message()}});
  }
  return read.status();
}

absl::StatusOr<Caller> Identify(const KeyRing* ring,
                                const Credentials& credentials) {
  return ring == nullptr ? Caller() : ring->Identify(credentials);
}

absl::Status CheckRole(const Caller& caller, RoleSet allowed,
                       absl::string_view what) {
  return allowed.Has(caller.role) ? absl::OkStatus()
                                  : PermissionDeniedError(caller.role, what);
}

}  // namespace txl
