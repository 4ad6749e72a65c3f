#pragma once

// txl-server keys add|list|revoke --keys FILE

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace txl {

// Whether the program's arguments ask for it.
bool IsKeysCommand(const std::vector<std::string>& arguments);

// What was asked for on standard output, of `add` the key as the last word of
// its line, the only time that it is shown. The exit code: 0: done; 1: it
// failed; 2: usage.
int RunKeysCommand(std::vector<std::string> arguments);

// A secret in a file of its own.

// Bytes that a key file has at least and at most.
inline constexpr int64_t kLeastKeyBytes = 32;
inline constexpr int64_t kMostKeyBytes = 4096;

// All bytes of the file. Errors: as ReadSecretFile.
absl::StatusOr<std::string> ReadKeyFile(const std::string& path);

}  // namespace txl
