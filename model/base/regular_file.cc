#include "model/base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

constexpr int64_t kBlockBytes = 64 * 1024;

absl::Status SystemError(const std::string& path, absl::string_view problem) {
  const int error = errno;
  const std::string message =
      absl::StrCat(path, ": ", problem, ": ", std::strerror(error));
  return error == ENOENT || error == ENOTDIR
             ? absl::NotFoundError(message)
             : absl::InvalidArgumentError(message);
}

absl::Status TooLarge(const std::string& path, int64_t max_bytes) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": has more than ", max_bytes, " bytes"));
}

}  // namespace

absl::StatusOr<RegularFile> RegularFile::Open(const std::string& path,
                                              int64_t max_bytes) {
  // O_NONBLOCK: a pipe is refused below instead of waited for.
  const int fd =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return SystemError(path, "cannot be opened");
  RegularFile file(fd, 0);
  struct stat status = {};
  if (::fstat(fd, &status) != 0) return SystemError(path, "cannot be opened");
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is not a regular file"));
  }
  if (status.st_size > max_bytes) return TooLarge(path, max_bytes);
  file.bytes_ = status.st_size;
  return file;
}

RegularFile::RegularFile(RegularFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), bytes_(other.bytes_) {}

RegularFile& RegularFile::operator=(RegularFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

RegularFile::~RegularFile() {
  if (fd_ >= 0) ::close(fd_);
}

absl::StatusOr<std::string> ReadRegularFile(const std::string& path,
                                            int64_t max_bytes) {
  TXL_ASSIGN_OR_RETURN(const RegularFile file,
                       RegularFile::Open(path, max_bytes));
  // One byte more than expected shows the end. The size is not relied on: files
  // of the kernel have none, others may change.
  std::string content;
  size_t filled = 0;
  while (true) {
    if (filled == content.size()) {
      content.resize(
          filled +
          static_cast<size_t>(std::max(
              file.bytes() + 1 - static_cast<int64_t>(filled), kBlockBytes)));
    }
    const ssize_t got =
        ::read(file.fd(), &content[filled], content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(path, "cannot be read");
    if (got == 0) break;
    filled += static_cast<size_t>(got);
    if (static_cast<int64_t>(filled) > max_bytes) {
      return TooLarge(path, max_bytes);
    }
  }
  content.resize(filled);
  return content;
}

}  // namespace txl
