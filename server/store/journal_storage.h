#pragma once

// A store's folder with its database open: what the journal's thread commits
// to.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/database.h"
#include "server/store/journal_entry.h"
#include "server/store/session_tables.h"
#include "server/store/store_folder.h"

namespace txl {

// Not thread-safe.
class JournalStorage {
 public:
  // Errors: as of OpenSqliteJournal (server/store/sqlite_journal.h).
  static absl::StatusOr<std::unique_ptr<JournalStorage>> Open(
      const SqliteJournalOptions& options);

  SessionTables& tables() { return *tables_; }
  // SessionTables::Commit. If there is no room, entries that make some are
  // committed into the reserve and beyond max_bytes, with all that come before
  // them.
  absl::Status Commit(const std::vector<JournalEntry>& entries);
  // Moves SQLite's log into the database where it is large, or with `idle`
  // where it is worth it. Errors: Unavailable; others do no harm.
  absl::Status Tidy(bool idle);
  // Bytes of the database and its log.
  int64_t Bytes() const;
  // No process opens the store until it has been copied.
  void MarkFailed() const { folder_->MarkFailed(); }
  // Size limit of the database; 0: no limit.
  int64_t max_bytes() const { return max_bytes_; }

 private:
  JournalStorage(std::unique_ptr<StoreFolder> folder,
                 std::unique_ptr<Database> database,
                 std::unique_ptr<SessionTables> tables, int64_t max_bytes)
      : folder_(std::move(folder)),
        database_(std::move(database)),
        tables_(std::move(tables)),
        max_bytes_(max_bytes) {}

  const std::unique_ptr<StoreFolder> folder_;
  const std::unique_ptr<Database> database_;
  const std::unique_ptr<SessionTables> tables_;
  const int64_t max_bytes_;
  bool reserved_ = true;
};

}  // namespace txl
