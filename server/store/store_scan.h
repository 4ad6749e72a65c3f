#pragma once

// What the offline tools read of a database, and change in it.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/session/session_name.h"
#include "server/store/database.h"
#include "server/store/session_tables.h"
#include "server/store/store_folder.h"

namespace txl {

// What the offline tools find in a store.

struct CheckedStore {
  struct Damaged {
    std::string session_id;
    std::string what;
  };

  int64_t sessions = 0;
  int64_t tokens = 0;                          // of sound sessions
  int64_t running_turns = 0;                   // begun and not ended
  std::map<std::string, int64_t> sessions_of;  // a model's fingerprint
  std::vector<Damaged> damaged;                // in the order of ids
  int64_t damaged_log_rows = 0;                // of running turns
  int64_t contents = 0;                        // lists of ids
  int64_t orphaned_contents = 0;               // of no session
  std::vector<std::string> database_errors;    // SQLite's own check
  int64_t images = 0;
  int64_t images_without_session = 0;  // servers remove them in time
  int64_t bytes = 0;                   // of the database
  bool failed = false;                 // marked FAILED

  // Orphans and images cost room only.
  bool sound() const {
    return damaged.empty() && damaged_log_rows == 0 &&
           database_errors.empty() && !failed;
  }
};

using StoreProgress = std::function<void(absl::string_view line)>;

// Not thread-safe. All it is made of outlives it.
class StoreScan {
 public:
  StoreScan(Database* database, const StoreFolder* folder, CheckedStore* report,
            StoreProgress progress)
      : database_(database),
        folder_(folder),
        report_(report),
        progress_(std::move(progress)) {}

  // Reads every row; fills the report but for files.
  absl::Status Read();
  // After Read: damaged sessions, damaged rows of the log and contents without
  // a session go, in one transaction each.
  absl::Status Repair();
  // Instead of both, of a database whose pages are damaged: every session that
  // can still be read is recreated in an empty database, its running turn too,
  // but not the record of its last one, and forks with ids of their own.
  absl::Status Salvage(Database* into);
  // Hexadecimal SHA-256 of the ids of all sessions.
  const std::set<std::string>& digests() const { return digests_; }

 private:
  absl::Status ReadModels();
  absl::Status ReadSessions();
  // OK, or what is wrong with the session.
  absl::Status ReadSession(const SessionName& session, StoredSession* stored);
  absl::Status ReadContents();
  absl::Status ReadDatabase();
  void FindSessions(const char* order, std::set<SessionName>& sessions);
  // OK, or what is wrong with the session.
  absl::Status SalvageSession(const SessionName& session, SessionTables* into);
  absl::Status RemoveSession(const SessionName& session);
  absl::Status Quarantine(const SessionName& session);
  absl::Status WriteContents();
  absl::Status InTransaction(const std::function<absl::Status()>& change);
  // DATA_LOSS: it is unknown.
  absl::StatusOr<std::string> FingerprintOf(const SessionName& session);
  absl::StatusOr<SessionTables*> TablesOf(const std::string& fingerprint);

  Database* const database_;
  const StoreFolder* const folder_;
  CheckedStore* const report_;
  const StoreProgress progress_;
  std::map<std::string, int64_t> vocab_sizes_;  // of fingerprints
  // By fingerprint.
  std::map<std::string, std::unique_ptr<SessionTables>> tables_;
  std::vector<SessionName> damaged_;
  std::map<int64_t, std::pair<int64_t, int64_t>> contents_;  // parent, base
  std::map<int64_t, int64_t> references_;  // of contents that somebody uses
  std::set<std::string> digests_;
};

// Reads SQLite's log of a database before SQLite does: behind a damaged place
// SQLite drops all of it without a word, also what was acknowledged.

struct WalState {
  int64_t bad_at = -1;  // byte where the first bad frame begins; -1: none
  // Transactions whose end stands in or behind it.
  int64_t lost_commits = 0;

  // The last transaction may have been cut off by the end of the machine: no
  // client was told of it. All others were on stable storage before it began.
  bool damaged() const { return lost_commits > 1; }
};

// The log of a database with pages of kWalPageBytes, which was made empty
// whenever it was moved into the database: so all its frames are of one round.
// A file that is missing or that ends within a frame is sound. Errors:
// Unavailable where it cannot be read. REQUIRES: the database is not open.
inline constexpr int64_t kWalPageBytes = 4096;
absl::StatusOr<WalState> ReadWal(const std::string& path);

// DataLoss, naming the file and the place, where the log is damaged.
absl::Status CheckWal(const std::string& path, const WalState& state);

}  // namespace txl
