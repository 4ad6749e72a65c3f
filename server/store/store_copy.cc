#include "server/store/store_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/store/database.h"

namespace txl {
namespace {

absl::Status FileError(const std::string& path, const char* what) {
  return absl::UnavailableError(
      absl::StrCat(path, ": ", what, ": ", std::strerror(errno)));
}

// A file's bytes, or a folder's names, on stable storage.
absl::Status Sync(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return FileError(path, "cannot be opened");
  const bool synced = ::fsync(file) == 0;
  absl::Status status;
  if (!synced) status = FileError(path, "cannot be written");
  ::close(file);
  return status;
}

absl::Status Rename(const StoreFolder& folder, const std::string& from,
                    const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    return FileError(from, "cannot be renamed");
  }
  return Sync(folder.path());
}

// Has this name once it is whole.
std::string WholeCopy(const StoreFolder& folder) {
  return folder.database() + ".new";
}

}  // namespace

std::string HalfCopyOf(const StoreFolder& folder) {
  return folder.database() + ".copy";
}

absl::Status CopyDatabase(const StoreFolder& folder, const std::string& vfs) {
  const std::string copy = HalfCopyOf(folder);
  ::unlink(copy.c_str());
  {
    TXL_ASSIGN_OR_RETURN(const std::unique_ptr<Database> old,
                         Database::Open({folder.database(), vfs, 0}));
    TXL_ASSIGN_OR_RETURN(Statement vacuum, old->Prepare("VACUUM INTO ?"));
    TXL_RETURN_IF_ERROR(vacuum.Bind(copy).Run());
  }
  return TakeCopy(folder);
}

absl::Status TakeCopy(const StoreFolder& folder) {
  const std::string copy = HalfCopyOf(folder);
  TXL_RETURN_IF_ERROR(Sync(copy));
  TXL_RETURN_IF_ERROR(Rename(folder, copy, WholeCopy(folder)));
  return FinishCopy(folder);
}

absl::Status FinishCopy(const StoreFolder& folder) {
  ::unlink(HalfCopyOf(folder).c_str());
  const std::string copy = WholeCopy(folder);
  if (::access(copy.c_str(), F_OK) != 0) return absl::OkStatus();
  // The old log would be taken for one of the new file.
  const std::string log = folder.database() + "-wal";
  if (::unlink(log.c_str()) != 0 && errno != ENOENT) {
    return FileError(log, "cannot be removed");
  }
  TXL_RETURN_IF_ERROR(Sync(folder.path()));
  return Rename(folder, copy, folder.database());
}

}  // namespace txl
