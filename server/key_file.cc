#include "server/key_file.h"

#include "server/base/secret_file.h"

namespace txl {

absl::StatusOr<std::string> ReadKeyFile(const std::string& path) {
  return ReadSecretFile(path, {kLeastKeyBytes, kMostKeyBytes, "a key"});
}

}  // namespace txl
