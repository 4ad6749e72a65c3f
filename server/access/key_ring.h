#pragma once

// Who a caller is, by the key that comes with a call.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/access/keys_file.h"
#include "server/access/role.h"
#include "server/base/clock.h"
#include "server/base/line_file.h"

namespace txl {

// What a call says of who makes it.
struct Credentials {
  // Every `authorization` of its headers.
  std::vector<std::string> authorization;
  // Common name of the connection's verified certificate; empty: there is none.
  std::string certificate = {};
};

// UNAUTHENTICATED: one text for all causes, so that no caller learns whether a
// key was ever valid.
absl::Status UnauthenticatedError();
// PERMISSION_DENIED: the role may not call `what`, a method or a path.
absl::Status PermissionDeniedError(Role role, absl::string_view what);

// The keys of a file, as it is now. Thread-safe.
class KeyRing {
 public:
  // `audit`: has what Refresh says, too; null: none. Both outlive the ring.
  // Errors: as ReadKeysFile.
  static absl::StatusOr<std::unique_ptr<KeyRing>> Open(
      const std::string& path, Clock* clock, LineFile* audit = nullptr);

  // The caller that the key belongs to. Without a key, a certificate stands for
  // a user of the tenant of its name. If no tenant can have that name, the
  // certificate identifies no caller, so that a proxy's does not stand for all
  // clients behind it. Errors: UNAUTHENTICATED.
  absl::StatusOr<Caller> Identify(const Credentials& credentials) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Reads the file again where it is another one than was read last. Where it
  // cannot be used the keys stay as they are, and the log has a warning, once
  // for each such file.
  void Refresh() ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads the file, changed or not. Errors: those of ReadKeysFile.
  absl::Status Reload() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // By digest. A search takes longer the more of a digest is right, but callers
  // cannot choose the digest of what they send, and a digest does not reveal
  // its key: the timing helps no attacker.
  using Keys = std::map<std::string, KeyEntry>;

  KeyRing(std::string path, Clock* clock, LineFile* audit)
      : path_(std::move(path)), clock_(clock), audit_(audit) {}

  const std::string path_;
  Clock* const clock_;
  LineFile* const audit_;
  mutable absl::Mutex mutex_;
  Keys keys_ ABSL_GUARDED_BY(mutex_);
  std::string version_ ABSL_GUARDED_BY(mutex_);  // of what was read last
};

// Who makes the call; without a ring everybody is the same. Errors:
// UNAUTHENTICATED.
absl::StatusOr<Caller> Identify(const KeyRing* ring,
                                const Credentials& credentials);
// Whether the caller has a role that is allowed to call `what`. Errors:
// PERMISSION_DENIED.
absl::Status CheckRole(const Caller& caller, RoleSet allowed,
                       absl::string_view what);

}  // namespace txl
