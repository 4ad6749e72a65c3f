#include "server/store/file_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace txl {

absl::Status FileError(absl::string_view path, absl::string_view what,
                       int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  return absl::Status(full ? absl::StatusCode::kResourceExhausted
                           : absl::StatusCode::kUnavailable,
                      absl::StrCat(path, ": cannot ", what, ": ",
                                   std::generic_category().message(error)));
}

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status WriteFully(int fd, const std::string& path,
                        absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(path, "write", errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status ReadFully(int fd, const std::string& path, void* out,
                       size_t size) {
  auto* next = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t got = ::read(fd, next, size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(path, "read", errno);
    if (got == 0) {
      return absl::OutOfRangeError(absl::StrCat(path, ": ends too early"));
    }
    next += got;
    size -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::Status SyncFolder(const std::string& path) {
  const FileDescriptor folder(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) return FileError(path, "open", errno);
  if (::fsync(folder.fd()) != 0) return FileError(path, "sync", errno);
  return absl::OkStatus();
}

absl::Status MakeFolder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) {
    const std::string parent =
        std::filesystem::path(path).parent_path().string();
    return SyncFolder(parent.empty() ? "." : parent);
  }
  if (errno == EEXIST) return absl::OkStatus();
  return FileError(path, "make the folder", errno);
}

}  // namespace txl
