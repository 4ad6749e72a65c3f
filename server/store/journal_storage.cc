#include "server/store/journal_storage.h"

#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/base/log.h"
#include "server/store/store_scan.h"
#include "server/store/store_tools.h"

namespace txl {
namespace {

// Of SQLite's log, which is moved into the database then, or when nothing was
// entered for a moment.
constexpr int64_t kMostWalBytes = int64_t{64} << 20;
constexpr int64_t kIdleWalBytes = int64_t{1} << 20;

int64_t FileBytes(const std::string& path) {
  struct stat about;
  return ::stat(path.c_str(), &about) == 0 ? about.st_size : 0;
}

SessionTablesOptions TablesOptions(const SqliteJournalOptions& options,
                                   const StoreFolder* folder) {
  SessionTablesOptions tables;
  tables.fingerprint = options.fingerprint;
  tables.vocab_size = options.vocab_size;
  tables.damaged = [folder](const std::string& id, const std::string& bytes) {
    folder->Quarantine(id, bytes);
  };
  return tables;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JournalStorage>> JournalStorage::Open(
    const SqliteJournalOptions& options) {
  TXL_ASSIGN_OR_RETURN(std::unique_ptr<StoreFolder> folder,
                       StoreFolder::Open(options.folder));
  TXL_RETURN_IF_ERROR(FinishCopy(*folder));
  TXL_RETURN_IF_ERROR(CheckIsThere(*folder));
  if (FileBytes(folder->database()) == 0) {
    TXL_RETURN_IF_ERROR(MakeDatabase(*folder));
  }
  if (folder->failed()) {
    if (!options.recover) {
      return absl::FailedPreconditionError(
          absl::StrCat(options.folder,
                       ": the storage of this store failed; start once with "
                       "--store-recover to copy it"));
    }
    TXL_RETURN_IF_ERROR(CopyDatabase(*folder, options.vfs));
    folder->ClearFailed();
  }
  folder->MakeReserve();
  const std::string wal = folder->database() + "-wal";
  TXL_ASSIGN_OR_RETURN(const WalState log, ReadWal(wal));
  if (!options.recover) TXL_RETURN_IF_ERROR(CheckWal(wal, log));
  TXL_ASSIGN_OR_RETURN(
      std::unique_ptr<Database> database,
      Database::Open({folder->database(), options.vfs, options.max_bytes}));
  absl::StatusOr<std::unique_ptr<SessionTables>> tables =
      SessionTables::Open(database.get(), TablesOptions(options, folder.get()));
  if (!tables.ok()) {
    return absl::Status(
        tables.status().code(),
        absl::StrCat(folder->database(), ": ", tables.status().message()));
  }
  // What is behind a bad place must not stand behind good ones later.
  if (log.bad_at >= 0) (void)database->Checkpoint();
  return std::unique_ptr<JournalStorage>(
      new JournalStorage(std::move(folder), std::move(database),
                         *std::move(tables), options.max_bytes));
}

absl::Status JournalStorage::Commit(const std::vector<JournalEntry>& entries) {
  absl::Status status = tables_->Commit(entries);
  if (status.ok() && !reserved_) {
    folder_->MakeReserve();
    reserved_ = true;
  }
  const bool makes_room =
      std::any_of(entries.begin(), entries.end(), MakesRoom);
  if (!absl::IsResourceExhausted(status) || !makes_room) return status;
  folder_->GiveUpReserve();
  reserved_ = false;
  TXL_RETURN_IF_ERROR(database_->Limit(0));
  status = tables_->Commit(entries);
  (void)database_->Limit(max_bytes_);
  return status;
}

absl::Status JournalStorage::Tidy(bool idle) {
  const int64_t wal = FileBytes(folder_->database() + "-wal");
  if (wal <= kMostWalBytes && !(idle && wal > kIdleWalBytes)) {
    return absl::OkStatus();
  }
  const absl::Status status = database_->Checkpoint();
  if (!status.ok()) {
    Log(LogSeverity::kError, "store", {{"checkpoint", status.message()}});
  }
  return status;
}

int64_t JournalStorage::Bytes() const {
  return FileBytes(folder_->database()) +
         FileBytes(folder_->database() + "-wal");
}

}  // namespace txl
