// StoreScan: what a database that cannot be copied still gives.

#include <memory>
#include <utility>

#include "model/base/status_macros.h"
#include "server/store/store_scan.h"

namespace txl {

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
