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
#include "server/session/session_name.h"
#include "server/store/database.h"
#include "server/store/session_tables.h"
#include "server/store/store_folder.h"
#include "server/store/store_report.h"

namespace txl {

// Not thread-safe. All it is made of outlives it.
class StoreScan {
 public:
  StoreScan(Database* database, const StoreFolder* folder, StoreReport* report,
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
  // can still be read is made anew in an empty database, its running turn too,
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
  // DATA_LOSS: nobody knows.
  absl::StatusOr<std::string> FingerprintOf(const SessionName& session);
  absl::StatusOr<SessionTables*> TablesOf(const std::string& fingerprint);

  Database* const database_;
  const StoreFolder* const folder_;
  StoreReport* const report_;
  const StoreProgress progress_;
  std::map<std::string, int64_t> vocab_sizes_;  // of fingerprints
  // By fingerprint.
  std::map<std::string, std::unique_ptr<SessionTables>> tables_;
  std::vector<SessionName> damaged_;
  std::map<int64_t, std::pair<int64_t, int64_t>> contents_;  // parent, base
  std::map<int64_t, int64_t> references_;  // of contents that somebody uses
  std::set<std::string> digests_;
};

}  // namespace txl
