#include "server/key_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

absl::Status CheckFile(const std::string& path, const struct stat& file) {
  if (!S_ISREG(file.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is no file"));
  }
  if ((file.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": others may use it; a key needs the mode 0600 or less"));
  }
  if (file.st_size < kLeastKeyBytes || file.st_size > kMostKeyBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has ", file.st_size, " bytes, a key has ",
                     kLeastKeyBytes, " to ", kMostKeyBytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadKeyFile(const std::string& path) {
  // Not blocking: a pipe is no file, and nobody may write to it.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return absl::ErrnoToStatus(errno, path);
  const absl::Cleanup close_it = [file] { close(file); };
  struct stat found = {};
  if (fstat(file, &found) != 0) return absl::ErrnoToStatus(errno, path);
  TXL_RETURN_IF_ERROR(CheckFile(path, found));
  std::string key(found.st_size, '\0');
  size_t bytes = 0;
  while (bytes < key.size()) {
    const ssize_t got = read(file, &key[bytes], key.size() - bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, path);
    if (got == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": has become shorter while it was read"));
    }
    bytes += static_cast<size_t>(got);
  }
  return key;
}

}  // namespace txl
