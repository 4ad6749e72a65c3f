#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

// The whole content of a file, of /proc and /sys too, whose sizes say nothing.
// Empty where it cannot be read.
std::string ReadTextFile(const std::filesystem::path& file);

// What tells one version of a file from another: a new file has another inode,
// one that was written over or has another mode another time of change. Empty
// where there is none.
std::string FileVersion(const std::filesystem::path& file);

// Files with secrets, which only their owner may use and their group may read.

// Bytes that a file has at least and at most, and what is said to have so many.
struct SecretFileSize {
  int64_t least = 0;
  int64_t most = 0;
  absl::string_view what = "it";  // "a key", a literal
};

// All bytes of the file. Errors name the path: it cannot be read, is not a
// regular file or has too few or too many bytes (InvalidArgument), or more than
// owner and group may read it or more than its owner write it
// (FailedPrecondition).
absl::StatusOr<std::string> ReadSecretFile(const std::string& path,
                                           const SecretFileSize& size);

// Replaces the path, or what the link leads to, by a file of these bytes with
// the mode 0600: a reader finds the old file or the new one, whole, also after
// a crash. The new file has the old one's owner. Errors name the file.
absl::Status WriteSecretFile(const std::string& link, absl::string_view bytes);

}  // namespace txl
