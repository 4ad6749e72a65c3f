#pragma once

// A secret in a file of its own.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace txl {

// Bytes that a key file has at least and at most.
inline constexpr int64_t kLeastKeyBytes = 32;
inline constexpr int64_t kMostKeyBytes = 4096;

// All bytes of the file. Errors: as ReadSecretFile.
absl::StatusOr<std::string> ReadKeyFile(const std::string& path);

}  // namespace txl
