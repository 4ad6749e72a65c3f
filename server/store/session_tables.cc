#include "server/store/session_tables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/crc32c.h"
#include "model/base/status_macros.h"
#include "server/base/log.h"
#include "server/session/session_errors.h"
#include "server/session/session_name.h"
#include "server/store/database.h"

namespace txl {
namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

int64_t ExpireOf(const StoredHead& head) {
  return absl::ToUnixMillis(head.last_use + head.ttl);
}

constexpr char kSchema[] =
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "INSERT INTO meta VALUES ('store', lower(hex(randomblob(16))));"
    "INSERT INTO meta VALUES ('sessions', 0);"
    "CREATE TABLE session (tenant TEXT NOT NULL, id TEXT NOT NULL, content "
    "INTEGER NOT NULL, position INTEGER NOT NULL, expire INTEGER NOT NULL, "
    "log_row INTEGER NOT NULL, head BLOB NOT NULL, record BLOB, crc INTEGER "
    "NOT NULL, PRIMARY KEY (tenant, id));"
    "CREATE INDEX session_expire ON session (expire);";

absl::Status MakeTables(Database* database) {
  for (const std::string& sql :
       {std::string("BEGIN"), std::string(kSchema),
        std::string(ContentTables::Schema()), std::string(TurnLog::Schema()),
        absl::StrCat("PRAGMA user_version=", kStoreFormat),
        std::string("COMMIT")}) {
    TXL_RETURN_IF_ERROR(database->Run(sql.c_str()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SessionTables>> SessionTables::Open(
    Database* database, SessionTablesOptions options) {
  TXL_ASSIGN_OR_RETURN(const int64_t format,
                       database->Number("PRAGMA user_version"));
  if (format > kStoreFormat) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the store has format ", format,
        ", of a newer version of this program; this one knows ", kStoreFormat));
  }
  if (format == 0) TXL_RETURN_IF_ERROR(MakeTables(database));
  std::unique_ptr<SessionTables> tables(
      new SessionTables(database, std::move(options)));
  TXL_RETURN_IF_ERROR(tables->Prepare());
  return tables;
}

absl::Status SessionTables::Prepare() {
  TXL_ASSIGN_OR_RETURN(contents_,
                       ContentTables::Open(database_, options_.vocab_size));
  const std::pair<Statement*, const char*> statements[] = {
      {&find_,
       "SELECT content, position, log_row, head, record, crc FROM session "
       "WHERE tenant=? AND id=?"},
      {&glance_,
       "SELECT position, log_row FROM session WHERE tenant=? AND id=?"},
      {&write_,
       "INSERT OR REPLACE INTO session (tenant, id, content, position, "
       "expire, log_row, head, record, crc) VALUES (?,?,?,?,?,?,?,?,?)"},
      {&erase_, "DELETE FROM session WHERE tenant=? AND id=?"},
      {&list_,
       "SELECT id, position, head, log_row FROM session WHERE tenant=? AND "
       "id>? ORDER BY id LIMIT ?"},
      {&list_expired_,
       "SELECT tenant, id, position, log_row FROM session WHERE expire<=?"},
      {&positions_, "SELECT tenant, id, position, log_row FROM session"},
      {&count_, "UPDATE meta SET value=? WHERE key='sessions'"},
  };
  for (const auto& [statement, sql] : statements) {
    TXL_ASSIGN_OR_RETURN(*statement, database_->Prepare(sql));
  }
  TXL_ASSIGN_OR_RETURN(
      sessions_,
      database_->Number("SELECT value FROM meta WHERE key='sessions'"));
  if (options_.log == LogAtOpen::kFold) TXL_RETURN_IF_ERROR(NoteModel());
  return OpenLog();
}

absl::Status SessionTables::NoteModel() {
  const std::string key = "model " + options_.fingerprint;
  TXL_ASSIGN_OR_RETURN(
      Statement known,
      database_->Prepare("SELECT value FROM meta WHERE key=?"));
  TXL_ASSIGN_OR_RETURN(const bool found, known.Bind(key).Step());
  if (found && known.Int(0) == options_.vocab_size) return absl::OkStatus();
  known.Reset();
  TXL_ASSIGN_OR_RETURN(
      Statement note,
      database_->Prepare("INSERT OR REPLACE INTO meta VALUES (?,?)"));
  const absl::Status noted = note.Bind(key).Bind(options_.vocab_size).Run();
  // A full store still opens, so that something can be removed.
  return absl::IsResourceExhausted(noted) ? absl::OkStatus() : noted;
}

absl::Status SessionTables::OpenLog() {
  TXL_ASSIGN_OR_RETURN(log_, TurnLog::Open(database_));
  if (options_.log == LogAtOpen::kLeave) return absl::OkStatus();
  const bool repair = options_.log == LogAtOpen::kRepair;
  absl::Status error;
  const absl::Status folded = log_->Fold(
      [&](const std::string& session_id, const TurnLog::Turn& turn) {
        const absl::StatusOr<Row> row = Glance(session_id);
        if (!row.ok()) {
          if (!absl::IsNotFound(row.status())) error.Update(row.status());
          return false;
        }
        const bool joins = turn.ids.empty() || turn.from == row->position;
        return turn.rows.back() > row->log_row && (joins || !repair);
      },
      repair);
  TXL_RETURN_IF_ERROR(error);
  return absl::IsResourceExhausted(folded) ? absl::OkStatus() : folded;
}

absl::Status SessionTables::Commit(const std::vector<JournalEntry>& entries) {
  std::vector<bool> left_out(entries.size());
  while (true) {
    size_t entry = entries.size();
    absl::Status status = TryCommit(entries, left_out, &entry);
    const bool of_one = absl::IsDataLoss(status) || absl::IsNotFound(status);
    if (!of_one || entry == entries.size()) return status;
    // One session's damage is not another's, and nothing is half done.
    Log(LogSeverity::kError, "store", {{"entry_left_out", status.message()}});
    left_out[entry] = true;
  }
}

absl::Status SessionTables::TryCommit(const std::vector<JournalEntry>& entries,
                                      const std::vector<bool>& left_out,
                                      size_t* entry) {
  const int64_t sessions = sessions_;
  absl::Status status = database_->Run("BEGIN");
  for (size_t i = 0; i < entries.size() && status.ok(); ++i) {
    if (left_out[i]) {
      log_->Take(SessionOf(entries[i]));
      continue;
    }
    status = Apply(entries[i]);
    if (!status.ok()) *entry = i;
  }
  if (status.ok() && sessions != sessions_) {
    status = count_.Bind(sessions_).Run();
  }
  if (status.ok()) status = log_->Write();
  if (status.ok()) status = database_->Run("COMMIT");
  if (status.ok()) {
    log_->Committed();
    return status;
  }
  if (database_->InTransaction()) (void)database_->Run("ROLLBACK");
  log_->RolledBack();
  sessions_ = sessions;
  return status;
}

absl::Status SessionTables::Apply(const JournalEntry& entry) {
  return std::visit(
      Overloaded{
          [&](const CreateEntry& create) { return Create(create); },
          [&](const ForkEntry& fork) { return Fork(fork); },
          [&](const BeginEntry& begin) { return Begin(begin); },
          [&](const AppendEntry& append) { return Append(append); },
          [&](const EndEntry& end) { return End(end); },
          [&](const RewindEntry& rewind) { return Rewind(rewind); },
          [&](const RemoveEntry& remove) { return Remove(remove.session_id); },
      },
      entry);
}

// A turn of no session would stay in the log for ever.
absl::Status SessionTables::Begin(const BeginEntry& entry) {
  TXL_RETURN_IF_ERROR(Glance(entry.session_id).status());
  log_->Begin(entry.session_id, entry.intent, entry.now);
  return absl::OkStatus();
}

absl::Status SessionTables::Append(const AppendEntry& entry) {
  if (log_->Find(entry.session_id) == nullptr) {
    TXL_RETURN_IF_ERROR(Glance(entry.session_id).status());
  }
  log_->Append(entry.session_id, entry.tokens);
  return absl::OkStatus();
}

absl::Status SessionTables::Create(const CreateEntry& entry) {
  const std::string& id = entry.head.session_id;
  log_->Take(id);
  Row row;
  row.head = {options_.fingerprint, entry.head};
  TXL_ASSIGN_OR_RETURN(row.content, contents_->Branch(0, 0));
  TXL_RETURN_IF_ERROR(contents_->Append(row.content, 0, entry.ids.Copy()));
  row.position = entry.ids.size();
  TXL_RETURN_IF_ERROR(Write(id, std::move(row)));
  ++sessions_;
  return absl::OkStatus();
}

absl::Status SessionTables::Fork(const ForkEntry& entry) {
  TXL_ASSIGN_OR_RETURN(const Row parent, Find(entry.parent));
  if (entry.position > parent.position) return SessionDamagedError();
  log_->Take(entry.child.session_id);
  Row row;
  row.head = {options_.fingerprint, entry.child};
  TXL_ASSIGN_OR_RETURN(row.content,
                       contents_->Branch(parent.content, entry.position));
  row.position = entry.position;
  TXL_RETURN_IF_ERROR(Write(entry.child.session_id, std::move(row)));
  ++sessions_;
  return absl::OkStatus();
}

absl::Status SessionTables::End(const EndEntry& entry) {
  TurnLog::Turn turn = log_->Take(entry.session_id);
  TXL_ASSIGN_OR_RETURN(Row row, Find(entry.session_id));
  // The log may still have a turn that is part of the row.
  if (turn.EndedBefore(row.log_row)) turn = TurnLog::Turn();
  std::vector<int32_t> ids = std::move(turn.ids);
  const std::vector<int32_t>& more = entry.end.tokens.ids;
  const int64_t next = row.position + static_cast<int64_t>(ids.size());
  if (turn.damaged || (!ids.empty() && turn.from != row.position) ||
      (!more.empty() && entry.end.tokens.from != next)) {
    return SessionDamagedError();
  }
  ids.insert(ids.end(), more.begin(), more.end());
  TXL_RETURN_IF_ERROR(contents_->Append(row.content, row.position, ids));
  row.position += static_cast<int64_t>(ids.size());
  StoredHead& head = row.head.head;
  head.last_use = entry.end.last_use;
  head.last_turn = entry.end.last_turn;
  head.detokenizer = entry.end.detokenizer;
  head.earlier_requests = entry.end.earlier_requests;
  row.record.clear();
  if (entry.end.record != nullptr) {
    row.record = EncodeRecord(*entry.end.record);
    if (static_cast<int64_t>(row.record.size()) > options_.most_record_bytes) {
      row.record.clear();
    }
  }
  return Write(entry.session_id, std::move(row));
}

absl::Status SessionTables::Rewind(const RewindEntry& entry) {
  log_->Take(entry.session_id);
  TXL_ASSIGN_OR_RETURN(Row row, Find(entry.session_id));
  if (entry.position > row.position) return SessionDamagedError();
  TXL_ASSIGN_OR_RETURN(row.content,
                       contents_->Cut(row.content, entry.position));
  row.position = entry.position;
  row.head.head = entry.head;
  row.record.clear();
  return Write(entry.session_id, std::move(row));
}

absl::Status SessionTables::Remove(const std::string& session_id) {
  log_->Take(session_id);
  const absl::StatusOr<Row> row = Find(session_id);
  if (absl::IsNotFound(row.status())) return absl::OkStatus();
  absl::Status status = BindName(erase_, session_id).Run();
  if (status.ok()) {
    --sessions_;
    // Where the row is damaged nobody knows which content was the session's.
    if (row.ok()) status = contents_->Release(row->content);
  }
  // Pages that cannot be read are this session's damage: without them the store
  // goes on.
  return absl::IsUnknown(status) ? SessionDamagedError() : status;
}

Statement& SessionTables::BindName(Statement& statement,
                                   const std::string& session_id) {
  const SessionName name = SessionName::OfText(session_id);
  return statement.Bind(name.tenant()).Bind(name.id());
}

std::string SessionTables::CrcText(const std::string& session_id,
                                   const Row& row, const std::string& head) {
  const SessionName name = SessionName::OfText(session_id);
  ByteWriter text;
  text.Text(name.tenant());
  text.Text(name.id());
  text.I64(row.content);
  text.I64(row.position);
  text.I64(row.log_row);
  text.Text(head);
  text.Text(row.record);
  return text.Take();
}

absl::StatusOr<SessionTables::Row> SessionTables::Glance(
    const std::string& session_id) {
  TXL_ASSIGN_OR_RETURN(const bool found, BindName(glance_, session_id).Step());
  if (!found) return SessionUnknownError();
  Row row;
  row.position = glance_.Int(0);
  row.log_row = glance_.Int(1);
  glance_.Reset();
  return row;
}

absl::StatusOr<SessionTables::Row> SessionTables::Find(
    const std::string& session_id) {
  TXL_ASSIGN_OR_RETURN(const bool found, BindName(find_, session_id).Step());
  if (!found) return SessionUnknownError();
  Row row;
  row.content = find_.Int(0);
  row.position = find_.Int(1);
  row.log_row = find_.Int(2);
  const std::string bytes = find_.Blob(3);
  row.record = find_.Blob(4);
  const int64_t crc = find_.Int(5);
  find_.Reset();
  const std::string text = CrcText(session_id, row, bytes);
  absl::StatusOr<KeptHead> head = DecodeHead(bytes);
  if (crc != ExtendCrc32c(0, text.data(), text.size()) || !head.ok() ||
      head->head.session_id != session_id) {
    if (options_.damaged) options_.damaged(session_id, text);
    return SessionDamagedError();
  }
  row.head = *std::move(head);
  return row;
}

absl::Status SessionTables::Write(const std::string& session_id, Row row) {
  row.log_row = log_->last_row();
  const std::string head = EncodeHead(row.head);
  const std::string text = CrcText(session_id, row, head);
  BindName(write_, session_id)
      .Bind(row.content)
      .Bind(row.position)
      .Bind(ExpireOf(row.head.head))
      .Bind(row.log_row)
      .BindBlob(head);
  if (row.record.empty()) {
    write_.BindNull();
  } else {
    write_.BindBlob(row.record);
  }
  return write_.Bind(int64_t{ExtendCrc32c(0, text.data(), text.size())}).Run();
}

// SessionTables: what it is asked.

namespace {

// Of a session, whatever a damaged row says: what is reckoned from it fits.
constexpr int64_t kMostTokens = int64_t{1} << 40;

}  // namespace

absl::StatusOr<StoredSession> SessionTables::Load(
    const std::string& session_id) {
  const absl::StatusOr<Row> row = Find(session_id);
  if (absl::IsUnknown(row.status())) return SessionDamagedError();
  if (!row.ok()) return row.status();
  if (row->head.fingerprint != options_.fingerprint) return OtherModelError();
  absl::StatusOr<StoredSession> stored = Restore(*row);
  const bool damaged =
      absl::IsDataLoss(stored.status()) || absl::IsUnknown(stored.status());
  if (!damaged) return stored;
  if (options_.damaged) {
    options_.damaged(session_id,
                     CrcText(session_id, *row, EncodeHead(row->head)));
  }
  return SessionDamagedError();
}

absl::StatusOr<StoredSession> SessionTables::Restore(const Row& row) {
  StoredSession stored;
  stored.head = row.head.head;
  TXL_ASSIGN_OR_RETURN(stored.token_ids,
                       contents_->Read(row.content, row.position));
  if (!row.record.empty()) {
    TXL_ASSIGN_OR_RETURN(KeptRecord kept, DecodeRecord(row.record));
    stored.record = std::make_shared<const TurnRecord>(std::move(kept.record));
    stored.record_detokenizer = std::move(kept.detokenizer);
  }
  const TurnLog::Turn* const turn = log_->Find(stored.head.session_id);
  if (turn == nullptr || turn->EndedBefore(row.log_row)) return stored;
  if (turn->damaged || (!turn->ids.empty() && turn->from != row.position)) {
    return SessionDamagedError();
  }
  stored.head.last_use = std::max(stored.head.last_use, turn->begun);
  stored.running = turn->intent;
  stored.token_ids.Append(turn->ids);
  stored.running_tokens = static_cast<int64_t>(turn->ids.size());
  stored.running_events = turn->events;
  return stored;
}

absl::StatusOr<std::vector<StoredInfo>> SessionTables::List(
    const std::string& after, int64_t count) {
  std::vector<StoredInfo> page;
  const SessionName first = SessionName::OfText(after);
  BindName(list_, after).Bind(count);
  while (true) {
    TXL_ASSIGN_OR_RETURN(const bool more, list_.Step());
    if (!more) return page;
    const std::string session_id =
        SessionName(first.tenant(), list_.Blob(0)).text();
    StoredInfo info;
    info.position = PositionOf(session_id, list_.Int(1), list_.Int(3));
    const absl::StatusOr<KeptHead> head = DecodeHead(list_.Blob(2));
    // A damaged one is listed by its name.
    if (head.ok()) info.head = head->head;
    info.head.session_id = session_id;
    page.push_back(std::move(info));
  }
}

int64_t SessionTables::PositionOf(const std::string& session_id, int64_t row,
                                  int64_t log_row) const {
  row = std::clamp<int64_t>(row, 0, kMostTokens);
  const TurnLog::Turn* const turn = log_->Find(session_id);
  const bool runs = turn != nullptr && !turn->EndedBefore(log_row);
  return runs && turn->from == row
             ? row + static_cast<int64_t>(turn->ids.size())
             : row;
}

absl::Status SessionTables::Positions(
    const std::string& session_id,
    const std::function<void(const StoredPosition&)>& each) {
  if (!session_id.empty()) {
    const absl::StatusOr<Row> row = Glance(session_id);
    if (absl::IsNotFound(row.status())) return absl::OkStatus();
    if (!row.ok()) return row.status();
    each({session_id, PositionOf(session_id, row->position, row->log_row)});
    return absl::OkStatus();
  }
  while (true) {
    TXL_ASSIGN_OR_RETURN(const bool more, positions_.Step());
    if (!more) return absl::OkStatus();
    const std::string id =
        SessionName(positions_.Blob(0), positions_.Blob(1)).text();
    each({id, PositionOf(id, positions_.Int(2), positions_.Int(3))});
  }
}

absl::StatusOr<std::vector<StoredPosition>> SessionTables::ListExpired(
    absl::Time now, int64_t count) {
  std::vector<StoredPosition> sessions;
  list_expired_.Bind(absl::ToUnixMillis(now));
  while (static_cast<int64_t>(sessions.size()) < count) {
    TXL_ASSIGN_OR_RETURN(const bool more, list_expired_.Step());
    if (!more) return sessions;
    const std::string session_id =
        SessionName(list_expired_.Blob(0), list_expired_.Blob(1)).text();
    const int64_t position =
        PositionOf(session_id, list_expired_.Int(2), list_expired_.Int(3));
    absl::StatusOr<bool> expired = HasExpired(session_id, now);
    if (!expired.ok()) {
      list_expired_.Reset();
      return expired.status();
    }
    if (*expired) sessions.push_back({session_id, position});
  }
  list_expired_.Reset();
  return sessions;
}

// The column is not covered by the checksum, and knows no running turn. Damaged
// sessions go when the column says so.
absl::StatusOr<bool> SessionTables::HasExpired(const std::string& session_id,
                                               absl::Time now) {
  const absl::StatusOr<Row> row = Find(session_id);
  if (absl::IsDataLoss(row.status())) return true;
  if (!row.ok()) return row.status();
  const StoredHead& head = row->head.head;
  const TurnLog::Turn* const turn = log_->Find(session_id);
  const absl::Time used =
      turn == nullptr ? head.last_use : std::max(head.last_use, turn->begun);
  return used + head.ttl <= now;
}

}  // namespace txl
