#include "program/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace txl {
namespace {

constexpr int kMostNames = 100;
constexpr int kMostLinks = 40;  // as Linux follows

// The name of an open file, as /dev/stdout is by a link.
bool IsDescriptor(const std::string& path) {
  return absl::StartsWith(path, "/proc/") || absl::StartsWith(path, "/dev/fd/");
}

}  // namespace

std::string WithoutLinks(std::filesystem::path path) {
  std::error_code error;
  for (int i = 0; i < kMostLinks && !IsDescriptor(path); ++i) {
    const std::filesystem::path to = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = path.parent_path() / to;
  }
  return path;
}

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Open(
    const std::string& path, mode_t mode) {
  std::unique_ptr<OutputFile> file(new OutputFile(path));
  struct stat found = {};
  const bool there = stat(path.c_str(), &found) == 0;
  if (!there && errno != ENOENT) return file->Error();
  file->target_ = WithoutLinks(path);
  if (IsDescriptor(file->target_) || (there && !S_ISREG(found.st_mode))) {
    // At the end, where a shell's >> wants it too.
    file->fd_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    if (file->fd_ < 0) return file->Error();
    return file;
  }
  const absl::Status created = file->Create(mode);
  if (!created.ok()) return created;
  return file;
}

// Under a name that no file has: what is there may be the user's.
absl::Status OutputFile::Create(mode_t mode) {
  for (int i = 0; i < kMostNames; ++i) {
    const std::string name =
        absl::StrCat(target_, ".tmp", i == 0 ? "" : absl::StrCat(i));
    fd_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd_ >= 0) aside_ = name;
    if (fd_ >= 0 || errno != EEXIST) break;
  }
  return fd_ >= 0 ? absl::OkStatus() : Error();
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
  if (!aside_.empty()) unlink(aside_.c_str());
}

absl::Status OutputFile::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Error();
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status OutputFile::Finish() {
  if (aside_.empty()) return absl::OkStatus();
  if (fsync(fd_) != 0 || std::rename(aside_.c_str(), target_.c_str()) != 0) {
    return Error();
  }
  aside_.clear();
  return absl::OkStatus();
}

absl::Status OutputFile::Error() const {
  return absl::ErrnoToStatus(errno, absl::StrCat(path_, ": cannot be written"));
}

}  // namespace txl
