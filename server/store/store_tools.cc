#include "server/store/store_tools.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/store/database.h"
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
  TXL_RETURN_IF_ERROR(CheckIsThere(*folder));
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
                 const std::set<std::string>& digests, CheckedStore& report) {
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

absl::StatusOr<CheckedStore> Look(const StoreFolder& folder, bool repair,
                                  const StoreProgress& progress) {
  CheckedStore report;
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

absl::StatusOr<CheckedStore> Salvage(const StoreFolder& folder,
                                     const StoreProgress& progress) {
  progress("pages are damaged: copying session by session");
  CheckedStore report;
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

absl::StatusOr<CheckedStore> CheckStore(const std::string& folder,
                                        const StoreProgress& progress) {
  TXL_ASSIGN_OR_RETURN(const std::unique_ptr<StoreFolder> locked, Lock(folder));
  return Look(*locked, false, progress);
}

absl::StatusOr<CheckedStore> RepairStore(const std::string& folder,
                                         const StoreProgress& progress) {
  TXL_ASSIGN_OR_RETURN(const std::unique_ptr<StoreFolder> locked, Lock(folder));
  absl::StatusOr<CheckedStore> report = Look(*locked, true, progress);
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
  CompactedStore compacted = {.bytes_before = BytesOf(*locked)};
  progress("copying the database");
  TXL_RETURN_IF_ERROR(CopyDatabase(*locked, ""));
  compacted.bytes_after = BytesOf(*locked);
  return compacted;
}

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
  MakePrivate(copy);
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

absl::Status CheckIsThere(const StoreFolder& folder) {
  const std::string path = folder.database();
  std::error_code none, no_log;
  const auto bytes = std::filesystem::file_size(path, none);
  const auto log_bytes = std::filesystem::file_size(path + "-wal", no_log);
  const bool lost = none && !no_log && log_bytes > 0;
  if (!lost && (none || bytes > 0)) return absl::OkStatus();
  return absl::UnknownError(
      absl::StrCat(path, lost ? ": is missing, its log is there" : ": is empty",
                   "; put a copy of the store here, or remove journal.db and "
                   "journal.db-wal to begin a new one"));
}

absl::Status MakeDatabase(const StoreFolder& folder) {
  const absl::Status made =
      Database::Open({HalfCopyOf(folder), "", 0}).status();
  return made.ok() ? TakeCopy(folder) : made;
}

// StoreScan: what a database that cannot be copied still gives.

absl::Status StoreScan::Salvage(Database* into) {
  TXL_RETURN_IF_ERROR(into->Run("PRAGMA synchronous=OFF"));
  TXL_RETURN_IF_ERROR(ReadModels());
  // Each way ends at the first page that cannot be read.
  std::set<SessionName> sessions;
  FindSessions("SELECT tenant, id FROM session ORDER BY tenant, id", sessions);
  FindSessions("SELECT tenant, id FROM session ORDER BY tenant DESC, id DESC",
               sessions);
  FindSessions("SELECT tenant, id FROM session NOT INDEXED ORDER BY rowid",
               sessions);
  FindSessions("SELECT tenant, id FROM session NOT INDEXED ORDER BY rowid DESC",
               sessions);
  report_->sessions = static_cast<int64_t>(sessions.size());
  std::map<std::string, std::vector<SessionName>> of_model;
  for (const SessionName& session : sessions) {
    const absl::StatusOr<std::string> fingerprint = FingerprintOf(session);
    if (fingerprint.ok() && vocab_sizes_.count(*fingerprint) > 0) {
      of_model[*fingerprint].push_back(session);
    } else {
      report_->damaged.push_back({session.text(), "its model is not known"});
    }
  }
  for (const auto& [model, its_sessions] : of_model) {
    SessionTablesOptions options;
    options.fingerprint = model;
    options.vocab_size = vocab_sizes_.at(model);
    TXL_ASSIGN_OR_RETURN(const std::unique_ptr<SessionTables> tables,
                         SessionTables::Open(into, options));
    for (const SessionName& session : its_sessions) {
      TXL_RETURN_IF_ERROR(SalvageSession(session, tables.get()));
    }
  }
  return absl::OkStatus();
}

void StoreScan::FindSessions(const char* order,
                             std::set<SessionName>& sessions) {
  absl::StatusOr<Statement> all = database_->Prepare(order);
  if (!all.ok()) return;
  for (absl::StatusOr<bool> more = all->Step(); more.ok() && *more;
       more = all->Step()) {
    sessions.emplace(all->Blob(0), all->Blob(1));
  }
}

absl::Status StoreScan::SalvageSession(const SessionName& session,
                                       SessionTables* into) {
  StoredSession stored;
  const absl::Status read = ReadSession(session, &stored);
  if (absl::IsDataLoss(read) || absl::IsUnknown(read)) {
    report_->damaged.push_back({session.text(), std::string(read.message())});
    (void)Quarantine(session);
    return absl::OkStatus();
  }
  TXL_RETURN_IF_ERROR(read);
  const int64_t before = stored.token_ids.size() - stored.running_tokens;
  std::vector<JournalEntry> entries;
  entries.push_back(
      CreateEntry{stored.head, stored.token_ids.Slice(0, before)});
  if (stored.running.has_value()) {
    entries.push_back(
        BeginEntry{session.text(), *stored.running, stored.head.last_use});
    entries.push_back(
        AppendEntry{session.text(),
                    {before, stored.token_ids.Last(stored.running_tokens),
                     stored.running_events}});
  }
  report_->tokens += stored.token_ids.size();
  return into->Commit(entries);
}

}  // namespace txl
