#pragma once

// A secret in a file of its own.

#include <string>

#include "absl/status/statusor.h"

namespace txl {

// Bytes that a key file has at least and at most.
inline constexpr int64_t kLeastKeyBytes = 32;
inline constexpr int64_t kMostKeyBytes = 4096;

// All bytes of the file. Errors name the path: it cannot be read, is no file,
// has too few or too many bytes (InvalidArgument), or others than its owner may
// read or write it (FailedPrecondition).
absl::StatusOr<std::string> ReadKeyFile(const std::string& path);

}  // namespace txl
