#pragma once

// The database of sessions, of all tenants: SessionJournal's entries and reads,
// one after the other on one thread.
//
//   meta     key, value ("store", "sessions"; "model F": the vocabulary size
//            of the model with fingerprint F)
//   session  tenant, id, content, position, expire (Unix milliseconds),
//            log_row (the log's newest row when this one was written: turns
//            with entries up to there have ended), head, record (null: none),
//            crc of all

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/session/session_journal.h"
#include "server/store/content_tables.h"
#include "server/store/database.h"
#include "server/store/journal_entry.h"
#include "server/store/record_codec.h"
#include "server/store/turn_log.h"

namespace txl {

inline constexpr int64_t kStoreFormat = 1;

// What to do with the log of running turns when the tables are opened.
enum class LogAtOpen {
  kLeave,   // nothing
  kFold,    // one row for each turn that runs
  kRepair,  // as kFold; damaged rows and turns go
};

struct SessionTablesOptions {
  std::string fingerprint;  // of the model
  int64_t vocab_size = 0;
  // Records that are longer are not kept.
  int64_t most_record_bytes = 64 << 10;
  LogAtOpen log = LogAtOpen::kFold;
  // Told of rows that cannot be read.
  std::function<void(const std::string& session_id, const std::string& bytes)>
      damaged;
};

// Not thread-safe.
class SessionTables {
 public:
  // Makes the tables in an empty database. Errors: FailedPrecondition for a
  // newer format.
  static absl::StatusOr<std::unique_ptr<SessionTables>> Open(
      Database* database, SessionTablesOptions options);

  // All entries, or none, are on stable storage. An entry that its session
  // cannot take is left out: the session is damaged, or there is none.
  absl::Status Commit(const std::vector<JournalEntry>& entries);

  // Reads, as in SessionJournal.
  absl::StatusOr<StoredSession> Load(const std::string& session_id);
  absl::StatusOr<std::vector<StoredInfo>> List(const std::string& after,
                                               int64_t count);
  absl::StatusOr<std::vector<StoredPosition>> ListExpired(absl::Time now,
                                                          int64_t count);
  absl::Status Positions(
      const std::string& session_id,
      const std::function<void(const StoredPosition&)>& each);
  int64_t sessions() const { return sessions_; }

 private:
  struct Row {
    int64_t content = 0;
    int64_t position = 0;
    int64_t log_row = 0;
    KeptHead head;
    std::string record;  // empty: none
  };

  SessionTables(Database* database, SessionTablesOptions options)
      : database_(database), options_(std::move(options)) {}
  absl::Status Prepare();
  absl::Status NoteModel();
  absl::Status OpenLog();
  // `entry`: where it failed, if at one of the entries.
  absl::Status TryCommit(const std::vector<JournalEntry>& entries,
                         const std::vector<bool>& left_out, size_t* entry);
  absl::Status Apply(const JournalEntry& entry);
  absl::Status Create(const CreateEntry& entry);
  absl::Status Fork(const ForkEntry& entry);
  absl::Status End(const EndEntry& entry);
  absl::Status Rewind(const RewindEntry& entry);
  absl::Status Remove(const std::string& session_id);
  absl::Status Begin(const BeginEntry& entry);
  absl::Status Append(const AppendEntry& entry);
  // Binds the tenant and the id of a session to a statement's first two.
  static Statement& BindName(Statement& statement,
                             const std::string& session_id);
  // The row's position and log_row alone. NOT_FOUND.
  absl::StatusOr<Row> Glance(const std::string& session_id);
  // Its position and what a running turn has added: `row` and `log_row` are the
  // session's columns.
  int64_t PositionOf(const std::string& session_id, int64_t row,
                     int64_t log_row) const;
  absl::StatusOr<bool> HasExpired(const std::string& session_id,
                                  absl::Time now);
  // NOT_FOUND, DATA_LOSS.
  absl::StatusOr<Row> Find(const std::string& session_id);
  absl::Status Write(const std::string& session_id, Row row);
  absl::StatusOr<StoredSession> Restore(const Row& row);
  static std::string CrcText(const std::string& session_id, const Row& row,
                             const std::string& head);

  Database* const database_;
  const SessionTablesOptions options_;
  std::unique_ptr<ContentTables> contents_;
  std::unique_ptr<TurnLog> log_;
  Statement find_, glance_, write_, erase_, list_, list_expired_, positions_;
  Statement count_;
  int64_t sessions_ = 0;
};

}  // namespace txl
