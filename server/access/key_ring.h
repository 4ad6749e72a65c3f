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
#include "server/access/caller.h"
#include "server/access/keys_file.h"
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

// UNAUTHENTICATED: one text for all causes, so that nobody learns whether a key
// ever was one.
absl::Status UnauthenticatedError();
// PERMISSION_DENIED.
absl::Status PermissionDeniedError();

// The keys of a file, as it is now. Thread-safe.
class KeyRing {
 public:
  // `audit`: has what Refresh says, too; null: none. Both outlive the ring.
  // Errors: as ReadKeysFile.
  static absl::StatusOr<std::unique_ptr<KeyRing>> Open(
      const std::string& path, Clock* clock, LineFile* audit = nullptr);

  // Whose key it is. Where none is sent a certificate makes a user of the
  // tenant of its name; a name that no tenant can have makes nobody, so that a
  // proxy need not lend its own to all who stand behind it. UNAUTHENTICATED.
  absl::StatusOr<Caller> Identify(const Credentials& credentials) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Reads the file again where it is another one than was read last. Where it
  // cannot be used the keys stay as they are, and the log has a warning, once
  // for each such file.
  void Refresh() ABSL_LOCKS_EXCLUDED(mutex_);
  // The same whether it is another one or not. Errors: as ReadKeysFile.
  absl::Status Reload() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // By digest. A search in it takes longer the more of a digest is right, but
  // whoever asks cannot choose the digest of what he sends, and a digest does
  // not tell its key: what it tells helps nobody.
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
// Whether he may. Errors: PERMISSION_DENIED.
absl::Status CheckRole(const Caller& caller, RoleSet allowed);

}  // namespace txl
