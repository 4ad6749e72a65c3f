#pragma once

// What the command line of txl-server asks for: to serve a model, or one of the
// subcommands, which need no model.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace txl {

// txl-server --model DIR ...

// Serves until a signal or a call drains the server, or does what one of the
// flags --help, --version, --print-config and --check-config asks for. The exit
// code: server/signals.h.
int RunServeCommand(const std::vector<std::string>& arguments);

// txl-server keys add|list|revoke --keys FILE

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

// All bytes of the file of --export-key-file. Errors: as ReadSecretFile, naming
// the flag.
absl::StatusOr<std::string> ReadKeyFile(const std::string& path);

// txl-server store check|repair|compact DIR

// Whether the program's arguments ask for it.
bool IsStoreCommand(const std::vector<std::string>& arguments);

// What was found on standard output, how far it is on standard error. The exit
// code: 0: done, the store is sound; 1: it failed, or there is damage that is
// still there; 2: usage.
int RunStoreCommand(const std::vector<std::string>& arguments);

}  // namespace txl
