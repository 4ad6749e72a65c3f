#include "server/store/store_scan.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/base/status_macros.h"
#include "server/base/byte_fields.h"
#include "server/base/digest.h"
#include "server/store/content_tables.h"
#include "server/store/record_codec.h"
#include "server/store/turn_log.h"

namespace txl {
namespace {

constexpr int64_t kProgressSessions = 10'000;

}  // namespace

absl::Status StoreScan::Read() {
  TXL_ASSIGN_OR_RETURN(const int64_t format,
                       database_->Number("PRAGMA user_version"));
  if (format == 0) return absl::UnknownError("there are no sessions' tables");
  if (format > kStoreFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat("the store has format ", format, ", of a newer version"));
  }
  TXL_RETURN_IF_ERROR(ReadDatabase());
  TXL_RETURN_IF_ERROR(ReadModels());
  TXL_RETURN_IF_ERROR(ReadSessions());
  return ReadContents();
}

absl::Status StoreScan::ReadDatabase() {
  progress_("checking the database's pages");
  TXL_ASSIGN_OR_RETURN(Statement check,
                       database_->Prepare("PRAGMA integrity_check(20)"));
  while (true) {
    TXL_ASSIGN_OR_RETURN(const bool more, check.Step());
    if (!more) break;
    const std::string line = check.Blob(0);
    if (line != "ok") report_->database_errors.push_back(line);
  }
  TXL_ASSIGN_OR_RETURN(const std::unique_ptr<TurnLog> log,
                       TurnLog::Open(database_));
  report_->damaged_log_rows = log->damaged_rows();
  return absl::OkStatus();
}

absl::Status StoreScan::ReadModels() {
  TXL_ASSIGN_OR_RETURN(Statement models,
                       database_->Prepare("SELECT key, value FROM meta WHERE "
                                          "key LIKE 'model %'"));
  while (true) {
    TXL_ASSIGN_OR_RETURN(const bool more, models.Step());
    if (!more) return absl::OkStatus();
    const std::string key = models.Blob(0);
    vocab_sizes_[std::string(absl::StripPrefix(key, "model "))] = models.Int(1);
  }
}

absl::Status StoreScan::ReadSessions() {
  TXL_ASSIGN_OR_RETURN(
      Statement all,
      database_->Prepare("SELECT tenant, id FROM session ORDER BY id, tenant"));
  while (true) {
    TXL_ASSIGN_OR_RETURN(const bool more, all.Step());
    if (!more) return absl::OkStatus();
    const SessionName session(all.Blob(0), all.Blob(1));
    digests_.insert(absl::BytesToHexString(Sha256Of(session.text())));
    StoredSession stored;
    const absl::Status status = ReadSession(session, &stored);
    if (!status.ok() && !absl::IsDataLoss(status)) return status;
    if (status.ok()) {
      report_->tokens += stored.token_ids.size();
      report_->running_turns += stored.running.has_value() ? 1 : 0;
    } else {
      damaged_.push_back(session);
      report_->damaged.push_back(
          {session.text(), std::string(status.message())});
    }
    if (++report_->sessions % kProgressSessions == 0) {
      progress_(absl::StrCat(report_->sessions, " sessions read"));
    }
  }
}

absl::StatusOr<std::string> StoreScan::FingerprintOf(
    const SessionName& session) {
  TXL_ASSIGN_OR_RETURN(
      Statement find,
      database_->Prepare("SELECT head FROM session WHERE tenant=? AND id=?"));
  TXL_ASSIGN_OR_RETURN(const bool found,
                       find.Bind(session.tenant()).Bind(session.id()).Step());
  if (!found) return absl::DataLossError("it is not where it should be");
  absl::StatusOr<KeptHead> head = DecodeHead(find.Blob(0));
  if (!head.ok()) return absl::DataLossError("its head cannot be read");
  return std::move(head->fingerprint);
}

absl::Status StoreScan::ReadSession(const SessionName& session,
                                    StoredSession* stored) {
  TXL_ASSIGN_OR_RETURN(const std::string fingerprint, FingerprintOf(session));
  TXL_ASSIGN_OR_RETURN(SessionTables* const tables, TablesOf(fingerprint));
  absl::StatusOr<StoredSession> loaded = tables->Load(session.text());
  // A head with another model's name is no other model's session.
  if (absl::IsFailedPrecondition(loaded.status())) {
    return absl::DataLossError("its model is in doubt");
  }
  if (!loaded.ok()) return loaded.status();
  ++report_->sessions_of[fingerprint];
  *stored = *std::move(loaded);
  return absl::OkStatus();
}

absl::StatusOr<SessionTables*> StoreScan::TablesOf(
    const std::string& fingerprint) {
  std::unique_ptr<SessionTables>& tables = tables_[fingerprint];
  if (tables == nullptr) {
    const auto size = vocab_sizes_.find(fingerprint);
    if (size == vocab_sizes_.end()) {
      return absl::DataLossError("it is of a model that the store never had");
    }
    SessionTablesOptions options;
    options.fingerprint = fingerprint;
    options.vocab_size = size->second;
    options.log = LogAtOpen::kLeave;
    TXL_ASSIGN_OR_RETURN(tables, SessionTables::Open(database_, options));
  }
  return tables.get();
}

absl::Status StoreScan::ReadContents() {
  contents_.clear();
  references_.clear();
  TXL_ASSIGN_OR_RETURN(
      Statement all,
      database_->Prepare("SELECT id, parent, base FROM content"));
  while (true) {
    TXL_ASSIGN_OR_RETURN(const bool more, all.Step());
    if (!more) break;
    contents_[all.Int(0)] = {all.Int(1), all.Int(2)};
  }
  TXL_ASSIGN_OR_RETURN(Statement used,
                       database_->Prepare("SELECT content FROM session"));
  while (true) {
    TXL_ASSIGN_OR_RETURN(const bool more, used.Step());
    if (!more) break;
    int64_t content = used.Int(0);
    // Up to one that others had led to.
    for (auto row = contents_.find(content); row != contents_.end();
         row = contents_.find(row->second.first)) {
      if (++references_[row->first] > 1) break;
    }
  }
  report_->contents = static_cast<int64_t>(contents_.size());
  report_->orphaned_contents =
      static_cast<int64_t>(contents_.size() - references_.size());
  return absl::OkStatus();
}

absl::Status StoreScan::Repair() {
  tables_.clear();
  SessionTablesOptions options;
  options.log = LogAtOpen::kRepair;
  TXL_RETURN_IF_ERROR(SessionTables::Open(database_, options).status());
  const StoreReport found = *report_;
  for (const SessionName& session : damaged_) {
    StoredSession stored;
    // It may have been its turn alone.
    const absl::Status status = ReadSession(session, &stored);
    if (status.ok()) continue;
    if (!absl::IsDataLoss(status)) return status;
    TXL_RETURN_IF_ERROR(Quarantine(session));
    TXL_RETURN_IF_ERROR(InTransaction([&] { return RemoveSession(session); }));
  }
  TXL_RETURN_IF_ERROR(ReadContents());
  progress_(absl::StrCat("removing ", report_->orphaned_contents,
                         " contents without a session"));
  *report_ = found;
  return InTransaction([this] { return WriteContents(); });
}

absl::Status StoreScan::Quarantine(const SessionName& session) {
  TXL_ASSIGN_OR_RETURN(
      Statement row,
      database_->Prepare("SELECT content, position, log_row, head, record FROM "
                         "session WHERE tenant=? AND id=?"));
  TXL_ASSIGN_OR_RETURN(const bool found,
                       row.Bind(session.tenant()).Bind(session.id()).Step());
  if (!found) return absl::OkStatus();
  ByteWriter left;
  left.Text(session.tenant());
  left.Text(session.id());
  for (const int column : {0, 1, 2}) left.I64(row.Int(column));
  for (const int column : {3, 4}) left.Text(row.Blob(column));
  TXL_ASSIGN_OR_RETURN(
      Statement chunks,
      database_->Prepare("SELECT start, ids FROM chunk WHERE content=?"));
  chunks.Bind(row.Int(0));
  while (true) {
    TXL_ASSIGN_OR_RETURN(const bool more, chunks.Step());
    if (!more) break;
    left.I64(chunks.Int(0));
    left.Text(chunks.Blob(1));
  }
  folder_->Quarantine(session.text(), left.bytes());
  return absl::OkStatus();
}

absl::Status StoreScan::RemoveSession(const SessionName& session) {
  TXL_ASSIGN_OR_RETURN(
      Statement erase,
      database_->Prepare("DELETE FROM session WHERE tenant=? AND id=?"));
  return erase.Bind(session.tenant()).Bind(session.id()).Run();
}

absl::Status StoreScan::WriteContents() {
  TXL_ASSIGN_OR_RETURN(Statement erase,
                       database_->Prepare("DELETE FROM content WHERE id=?"));
  TXL_ASSIGN_OR_RETURN(
      Statement count,
      database_->Prepare("UPDATE content SET refs=?, crc=? WHERE id=?"));
  for (const auto& [content, row] : contents_) {
    const auto used = references_.find(content);
    if (used == references_.end()) {
      TXL_RETURN_IF_ERROR(erase.Bind(content).Run());
      continue;
    }
    const auto& [parent, base] = row;
    TXL_RETURN_IF_ERROR(
        count.Bind(used->second)
            .Bind(ContentCrc(content, parent, base, used->second))
            .Bind(content)
            .Run());
  }
  TXL_RETURN_IF_ERROR(database_->Run(
      "DELETE FROM chunk WHERE content NOT IN (SELECT id FROM content)"));
  return database_->Run(
      "UPDATE meta SET value=(SELECT count(*) FROM session) WHERE "
      "key='sessions'");
}

absl::Status StoreScan::InTransaction(
    const std::function<absl::Status()>& change) {
  TXL_RETURN_IF_ERROR(database_->Run("BEGIN"));
  absl::Status status = change();
  if (status.ok()) status = database_->Run("COMMIT");
  if (!status.ok() && database_->InTransaction()) {
    (void)database_->Run("ROLLBACK");
  }
  return status;
}

}  // namespace txl
