#include "server/store/store_tools.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/store/database.h"
#include "server/store/store_copy.h"
#include "server/store/store_folder.h"
#include "server/store/store_scan.h"

namespace txl {
namespace {

absl::StatusOr<std::unique_ptr<StoreFolder>> Lock(const std::string& path) {
  // Opening would make one.
  if (::access((path + "/journal.db").c_str(), F_OK) != 0 &&
      ::access((path + "/journal.db.new").c_str(), F_OK) != 0) {
    return absl::NotFoundError(absl::StrCat(path, ": there is no store"));
  }
  TXL_ASSIGN_OR_RETURN(std::unique_ptr<StoreFolder> folder,
                       StoreFolder::Open(path));
  TXL_RETURN_IF_ERROR(FinishCopy(*folder));
  return folder;
}

int64_t BytesOf(const StoreFolder& folder) {
  int64_t bytes = 0;
  for (const char* end : {"", "-wal"}) {
    struct stat about;
    const std::string path = folder.database() + end;
    if (::stat(path.c_str(), &about) == 0) bytes += about.st_size;
  }
  return bytes;
}

// Images lie in a folder that the digest of their session's id names.
void CountImages(const StoreFolder& folder,
                 const std::set<std::string>& digests, StoreReport& report) {
  std::error_code error;
  std::filesystem::recursive_directory_iterator file(folder.path() + "/images",
                                                     error);
  for (; !error && file != std::filesystem::recursive_directory_iterator();
       file.increment(error)) {
    if (file->path().extension() != ".txlm") continue;
    ++report.images;
    const std::string digest = file->path().parent_path().filename().string();
    if (digests.count(digest) == 0) ++report.images_without_session;
  }
}

absl::StatusOr<StoreReport> Look(const StoreFolder& folder, bool repair,
                                 const StoreProgress& progress) {
  StoreReport report;
  report.bytes = BytesOf(folder);
  report.failed = folder.failed();
  TXL_ASSIGN_OR_RETURN(const std::unique_ptr<Database> database,
                       Database::Open({folder.database(), "", 0}));
  StoreScan scan(database.get(), &folder, &report, progress);
  TXL_RETURN_IF_ERROR(scan.Read());
  CountImages(folder, scan.digests(), report);
  if (repair) TXL_RETURN_IF_ERROR(scan.Repair());
  return report;
}

absl::StatusOr<StoreReport> Salvage(const StoreFolder& folder,
                                    const StoreProgress& progress) {
  progress("pages are damaged: copying session by session");
  StoreReport report;
  report.bytes = BytesOf(folder);
  ::unlink(HalfCopyOf(folder).c_str());
  {
    TXL_ASSIGN_OR_RETURN(const std::unique_ptr<Database> old,
                         Database::Open({folder.database(), "", 0}));
    TXL_ASSIGN_OR_RETURN(const std::unique_ptr<Database> made,
                         Database::Open({HalfCopyOf(folder), "", 0}));
    StoreScan scan(old.get(), &folder, &report, progress);
    TXL_RETURN_IF_ERROR(scan.Salvage(made.get()));
  }
  if (report.sessions == static_cast<int64_t>(report.damaged.size())) {
    return absl::UnknownError(
        absl::StrCat(folder.database(), ": no session in it can be read"));
  }
  // Somebody may still find more in it.
  const std::string kept = folder.path() + "/quarantine/journal.db";
  ::unlink(kept.c_str());
  if (::link(folder.database().c_str(), kept.c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat(kept, ": cannot be made"));
  }
  TXL_RETURN_IF_ERROR(TakeCopy(folder));
  return report;
}

}  // namespace

absl::StatusOr<StoreReport> CheckStore(const std::string& folder,
                                       const StoreProgress& progress) {
  TXL_ASSIGN_OR_RETURN(const std::unique_ptr<StoreFolder> locked, Lock(folder));
  return Look(*locked, false, progress);
}

absl::StatusOr<StoreReport> RepairStore(const std::string& folder,
                                        const StoreProgress& progress) {
  TXL_ASSIGN_OR_RETURN(const std::unique_ptr<StoreFolder> locked, Lock(folder));
  absl::StatusOr<StoreReport> report = Look(*locked, true, progress);
  absl::Status copied = report.status();
  if (copied.ok()) {
    progress("copying the database");
    copied = CopyDatabase(*locked, "");
  }
  if (absl::IsUnknown(copied)) {
    report = Salvage(*locked, progress);
    copied = report.status();
  }
  TXL_RETURN_IF_ERROR(copied);
  locked->ClearFailed();
  return report;
}

absl::StatusOr<CompactedStore> CompactStore(const std::string& folder,
                                            const StoreProgress& progress) {
  TXL_ASSIGN_OR_RETURN(const std::unique_ptr<StoreFolder> locked, Lock(folder));
  if (locked->failed()) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder, ": the storage of this store failed; repair it first"));
  }
  CompactedStore compacted;
  compacted.bytes_before = BytesOf(*locked);
  progress("copying the database");
  TXL_RETURN_IF_ERROR(CopyDatabase(*locked, ""));
  compacted.bytes_after = BytesOf(*locked);
  return compacted;
}

}  // namespace txl
