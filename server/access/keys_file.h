#pragma once

// The file of --keys: who has a key, and what it allows. It holds digests, so
// that reading it does not reveal a usable key. TOML:
//
//   [[key]]
//   name = "alice-laptop"
//   tenant = "alice"
//   role = "user"
//   sha256 = "9f86d0..."
//   expires = "2027-01-01T00:00:00Z"   # left out: never; quotes may be, too

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/access/role.h"

namespace txl {

inline constexpr int64_t kMostKeysFileBytes = 16 << 20;

struct KeyEntry {
  Caller caller;
  std::string digest;  // SHA-256 of the key, 32 bytes
  absl::Time expires = absl::InfiniteFuture();
};

// IsPlainName, as names of keys and tenants are; else InvalidArgument naming
// `what`.
absl::Status CheckAccessName(absl::string_view what, absl::string_view name);

// Names are there once, and so are digests. Errors: InvalidArgument naming the
// line or the key.
absl::StatusOr<std::vector<KeyEntry>> ParseKeys(absl::string_view toml);
std::string FormatKeys(const std::vector<KeyEntry>& keys);

// Both name the path in every error; see ReadSecretFile. Writing keeps the
// other lines of a file of [[key]] tables, as comments.
absl::StatusOr<std::vector<KeyEntry>> ReadKeysFile(const std::string& path);
absl::Status WriteKeysFile(const std::string& path,
                           const std::vector<KeyEntry>& keys);

// 256 bits of the system's generator, base64url without padding: 43
// characters. Internal when there is no entropy.
absl::StatusOr<std::string> NewKey();

}  // namespace txl
