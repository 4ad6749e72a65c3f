#include "server/base/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "program/output_file.h"

namespace txl {

std::string ReadTextFile(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

std::string FileVersion(const std::filesystem::path& file) {
  struct stat found = {};
  if (stat(file.c_str(), &found) != 0) return "";
  // The time of the last change of any kind, of its mode too.
  return absl::StrCat(found.st_dev, " ", found.st_ino, " ", found.st_size, " ",
                      found.st_ctim.tv_sec, ".", found.st_ctim.tv_nsec);
}

namespace {

absl::Status CheckFile(const std::string& path, const struct stat& file,
                       const SecretFileSize& size) {
  if (!S_ISREG(file.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is not a file"));
  }
  // Its group may read it: a Secret in Kubernetes is root's, and its reader's
  // by the group.
  if ((file.st_mode & (S_IWGRP | S_IXGRP | S_IRWXO)) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": others may use it; ", size.what,
                     " needs the mode 0640 or less"));
  }
  if (file.st_size < size.least || file.st_size > size.most) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has ", file.st_size, " bytes, ", size.what,
                     " has ", size.least, " to ", size.most));
  }
  return absl::OkStatus();
}

// Writes and syncs.
absl::Status WriteAll(int file, absl::string_view bytes,
                      const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = write(file, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return absl::ErrnoToStatus(errno, path);
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return fsync(file) == 0 ? absl::OkStatus() : absl::ErrnoToStatus(errno, path);
}

// Makes the new file that of the old one's owner, who reads it: root changes
// keys of a server that is somebody else's.
absl::Status KeepOwner(int file, const std::string& path) {
  struct stat before = {};
  if (stat(path.c_str(), &before) != 0 || before.st_uid == geteuid()) {
    return absl::OkStatus();
  }
  return fchown(file, before.st_uid, before.st_gid) == 0
             ? absl::OkStatus()
             : absl::ErrnoToStatus(errno, absl::StrCat(path, ": its owner"));
}

}  // namespace

absl::StatusOr<std::string> ReadSecretFile(const std::string& path,
                                           const SecretFileSize& size) {
  // Not blocking: a pipe is no file, and nobody may write to it.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return absl::ErrnoToStatus(errno, path);
  const absl::Cleanup close_it = [file] { close(file); };
  struct stat found = {};
  if (fstat(file, &found) != 0) return absl::ErrnoToStatus(errno, path);
  if (const absl::Status status = CheckFile(path, found, size); !status.ok()) {
    return status;
  }
  std::string all(found.st_size, '\0');
  size_t bytes = 0;
  while (bytes < all.size()) {
    const ssize_t got = read(file, &all[bytes], all.size() - bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, path);
    if (got == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": has become shorter while it was read"));
    }
    bytes += static_cast<size_t>(got);
  }
  return all;
}

absl::Status WriteSecretFile(const std::string& link, absl::string_view bytes) {
  const std::string path = WithoutLinks(link);
  std::string aside = path + ".XXXXXX";
  const int file = mkostemp(aside.data(), O_CLOEXEC);  // of the mode 0600
  if (file < 0) return absl::ErrnoToStatus(errno, path);
  absl::Status written = KeepOwner(file, path);
  if (written.ok()) written = WriteAll(file, bytes, path);
  close(file);
  if (!written.ok() || rename(aside.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(aside.c_str());
    return written.ok() ? absl::ErrnoToStatus(error, path) : written;
  }
  // The new name is on the disk when its folder is.
  std::string folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return absl::ErrnoToStatus(errno, folder);
  const bool synced = fsync(opened) == 0;
  const int error = errno;
  close(opened);
  return synced ? absl::OkStatus() : absl::ErrnoToStatus(error, folder);
}

}  // namespace txl
