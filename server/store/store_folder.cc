#include "server/store/store_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/base/digest.h"

namespace txl {
namespace {

absl::Status FolderError(const std::string& path, const char* what) {
  return absl::UnavailableError(
      absl::StrCat(path, ": ", what, ": ", std::strerror(errno)));
}

absl::Status MakeStoreFolder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0) {
    if (errno == EEXIST) return absl::OkStatus();
    return FolderError(path, "the folder cannot be made");
  }
  // What lies in a folder is there after a power loss if the folder's name is.
  const std::string parent = path + "/..";
  const int folder = ::open(parent.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = folder >= 0 && ::fsync(folder) == 0;
  absl::Status status;
  if (!synced) status = FolderError(path, "the folder cannot be kept");
  if (folder >= 0) ::close(folder);
  return status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StoreFolder>> StoreFolder::Open(
    const std::string& path) {
  absl::Status made = MakeStoreFolder(path);
  if (made.ok()) made = MakeStoreFolder(path + "/quarantine");
  if (!made.ok()) return made;
  const std::string name = path + "/LOCK";
  const int lock = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return FolderError(name, "the file cannot be opened");
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock);
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": another process has this store open"));
  }
  return std::unique_ptr<StoreFolder>(new StoreFolder(path, lock));
}

StoreFolder::~StoreFolder() { ::close(lock_); }

bool StoreFolder::failed() const {
  struct stat about;
  return ::stat((path_ + "/FAILED").c_str(), &about) == 0;
}

void StoreFolder::MarkFailed() const {
  std::ofstream(path_ + "/FAILED") << "The storage failed; see the server's "
                                      "log. Start once with --store-recover.\n";
}

void StoreFolder::ClearFailed() const { ::unlink((path_ + "/FAILED").c_str()); }

void StoreFolder::MakeReserve() const {
  const std::string name = path_ + "/reserve";
  const int file = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  if (::posix_fallocate(file, 0, kReserveBytes) != 0) ::unlink(name.c_str());
  ::close(file);
}

void StoreFolder::GiveUpReserve() const {
  ::unlink((path_ + "/reserve").c_str());
}

void StoreFolder::Quarantine(absl::string_view id,
                             absl::string_view bytes) const {
  const std::string name = absl::StrCat(
      path_, "/quarantine/", absl::BytesToHexString(Sha256Of(id)), ".row");
  std::ofstream(name, std::ios::binary) << bytes;
}

}  // namespace txl
