#pragma once

// Files with secrets, which nobody but their owner may use, or their group
// read.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

// Bytes that a file has at least and at most, and what is said to have so many.
struct SecretFileSize {
  int64_t least = 0;
  int64_t most = 0;
  absl::string_view what = "it";  // "a key", a literal
};

// All bytes of the file. Errors name the path: it cannot be read, is no file,
// has too few or too many bytes (InvalidArgument), or more than owner and group
// may read it or more than its owner write it (FailedPrecondition).
absl::StatusOr<std::string> ReadSecretFile(const std::string& path,
                                           const SecretFileSize& size);

// Puts a file of these bytes and the mode 0600 in the path's place: whoever
// reads finds the old one or the new one, whole, also after a crash. It is the
// old one's owner's. Errors name the path.
absl::Status WriteSecretFile(const std::string& path, absl::string_view bytes);

}  // namespace txl
