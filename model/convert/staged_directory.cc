#include "model/convert/staged_directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 16;  // against others that clear up meanwhile
constexpr absl::string_view kSuffix = ".partial-";

absl::Status SystemError(const std::string& path, absl::string_view what) {
  return absl::ErrnoToStatus(errno, absl::StrCat(path, ": ", what));
}

absl::Status Exists(const std::string& path) {
  return absl::AlreadyExistsError(absl::StrCat(path, ": exists already"));
}

bool Present(const std::string& path) {
  struct stat entry = {};
  return ::lstat(path.c_str(), &entry) == 0;
}

int OpenFolder(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

// Whether `fd` is still the folder at `path`.
bool IsAt(int fd, const std::string& path) {
  struct stat open = {}, named = {};
  return ::fstat(fd, &open) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

// A writer holds a lock on its folder as long as it lives; the system drops it
// with the process. Unlike a process id it means the same in every container.
void RemoveIfAbandoned(const std::string& path) {
  const int fd = OpenFolder(path);
  if (fd < 0) return;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  ::close(fd);
}

void RemoveAbandoned(const std::string& dir) {
  const fs::path above = fs::path(dir).parent_path();
  const std::string start =
      fs::path(dir).filename().string() + std::string(kSuffix);
  std::error_code error;
  fs::directory_iterator entry(above.empty() ? "." : above, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    int pid = 0;
    if (absl::StartsWith(name, start) &&
        absl::SimpleAtoi(name.substr(start.size()), &pid)) {
      RemoveIfAbandoned(entry->path());
    }
  }
}

// Makes and locks the folder. The descriptor, or -1 when another process
// removed it between the two, taking it for abandoned.
absl::StatusOr<int> MakeLocked(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0) {
    return SystemError(path, "cannot be made");
  }
  const int fd = OpenFolder(path);
  // Where the file system has no locks, nobody can take ours for abandoned.
  if (fd >= 0 &&
      (::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) &&
      IsAt(fd, path)) {
    return fd;
  }
  if (fd >= 0) ::close(fd);
  return -1;
}

absl::Status SyncEntry(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return SystemError(path, "cannot be opened");
  const bool synced = ::fsync(fd) == 0;
  const absl::Status status =
      synced ? absl::OkStatus() : SystemError(path, "cannot be written");
  ::close(fd);
  return status;
}

absl::Status SyncAll(const std::string& path) {
  std::error_code error;
  fs::recursive_directory_iterator entry(path, error);
  for (; !error && entry != fs::recursive_directory_iterator();
       entry.increment(error)) {
    if (entry->is_symlink()) continue;
    TXL_RETURN_IF_ERROR(SyncEntry(entry->path()));
  }
  if (error) {
    return absl::InternalError(
        absl::StrCat(path, ": cannot be listed: ", error.message()));
  }
  return SyncEntry(path);
}

// Renames unless there is something at `to`, an empty folder included.
absl::Status RenameToNew(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(),
                  RENAME_NOREPLACE) == 0) {
    return absl::OkStatus();
  }
  if (errno == EEXIST) return Exists(to);
  if (errno != EINVAL && errno != ENOSYS) {
    return SystemError(to, "cannot be given its name");
  }
  // A file system without that kind of rename.
  if (Present(to)) return Exists(to);
  if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return SystemError(to, "cannot be given its name");
}

}  // namespace

absl::StatusOr<std::unique_ptr<StagedDirectory>> StagedDirectory::Create(
    const std::string& dir) {
  std::string target = dir;
  while (target.size() > 1 && target.back() == '/') target.pop_back();
  if (target.empty()) {
    return absl::InvalidArgumentError("the folder to write has no name");
  }
  if (Present(target)) return Exists(target);
  RemoveAbandoned(target);
  const std::string path = absl::StrCat(target, kSuffix, ::getpid());
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    TXL_ASSIGN_OR_RETURN(const int lock, MakeLocked(path));
    if (lock < 0) continue;
    return std::unique_ptr<StagedDirectory>(
        new StagedDirectory(target, path, lock));
  }
  return absl::UnavailableError(absl::StrCat(path, ": is removed by others"));
}

StagedDirectory::~StagedDirectory() {
  if (!committed_) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ::close(lock_);
}

absl::Status StagedDirectory::Commit() {
  if (committed_) {
    return absl::FailedPreconditionError(
        absl::StrCat(dir_, ": was committed before"));
  }
  TXL_RETURN_IF_ERROR(SyncAll(path_));
  TXL_RETURN_IF_ERROR(RenameToNew(path_, dir_));
  committed_ = true;
  const fs::path above = fs::path(dir_).parent_path();
  return SyncEntry(above.empty() ? "." : above.string());
}

}  // namespace txl
