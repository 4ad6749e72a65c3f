#include "server/store/turn_log.h"

#include <utility>

#include "model/base/crc32c.h"
#include "model/base/status_macros.h"
#include "server/base/byte_fields.h"
#include "server/base/log.h"
#include "server/store/record_codec.h"

namespace txl {
namespace {

enum EntryKind : uint8_t { kBegin = 1, kAppend = 2 };

std::string BeginText(const std::string& session_id, const TurnIntent& intent,
                      absl::Time now) {
  ByteWriter out;
  out.U8(kBegin);
  out.Text(session_id);
  out.I64(absl::ToUnixNanos(now));
  WriteIntent(intent, out);
  return out.Take();
}

std::string AppendText(const std::string& session_id,
                       const JournalTokens& tokens) {
  ByteWriter out;
  out.U8(kAppend);
  out.Text(session_id);
  WriteTokens(tokens, out);
  return out.Take();
}

}  // namespace

int64_t LogRowCrc(int64_t seq, absl::string_view entries) {
  return ExtendCrc32c(ExtendCrc32c(0, &seq, sizeof(seq)), entries.data(),
                      entries.size());
}

const char* TurnLog::Schema() {
  return "CREATE TABLE log (seq INTEGER PRIMARY KEY, entries BLOB NOT NULL, "
         "crc INTEGER NOT NULL);";
}

absl::StatusOr<std::unique_ptr<TurnLog>> TurnLog::Open(Database* database) {
  std::unique_ptr<TurnLog> log(new TurnLog(database));
  TXL_ASSIGN_OR_RETURN(log->insert_,
                       database->Prepare("INSERT INTO log VALUES (?,?,?)"));
  TXL_ASSIGN_OR_RETURN(log->erase_,
                       database->Prepare("DELETE FROM log WHERE seq=?"));
  TXL_RETURN_IF_ERROR(log->ReadAll());
  return log;
}

absl::Status TurnLog::ReadAll() {
  TXL_ASSIGN_OR_RETURN(
      Statement all,
      database_->Prepare("SELECT seq, entries, crc FROM log ORDER BY seq"));
  while (true) {
    TXL_ASSIGN_OR_RETURN(const bool more, all.Step());
    if (!more) break;
    last_row_ = all.Int(0);
    const std::string entries = all.Blob(1);
    if (all.Int(2) == LogRowCrc(last_row_, entries)) {
      ReadRow(last_row_, entries);
    } else {
      // Sessions with entries in it show a hole, or are as before their turn.
      damaged_rows_.insert(last_row_);
      Log(LogSeverity::kError, "store", {{"damaged_log_row", last_row_}});
    }
  }
  return absl::OkStatus();
}

void TurnLog::ReadRow(int64_t seq, const std::string& entries) {
  ByteReader in(entries);
  while (in.ok() && !in.rest().empty()) {
    const uint8_t kind = in.U8();
    const std::string session_id = in.Text();
    if (kind == kBegin) {
      const absl::Time now = absl::FromUnixNanos(in.I64());
      const TurnIntent intent = ReadIntent(in);
      if (!in.ok()) break;
      for (const int64_t row : turns_[session_id].rows) --turns_of_row_[row];
      Turn turn;
      turn.intent = intent;
      turn.begun = now;
      turns_[session_id] = std::move(turn);
    } else {
      const JournalTokens tokens = ReadTokens(in);
      if (!in.ok()) break;
      Add(tokens, turns_[session_id]);
    }
    std::vector<int64_t>& rows = turns_[session_id].rows;
    if (rows.empty() || rows.back() != seq) {
      rows.push_back(seq);
      ++turns_of_row_[seq];
    }
  }
}

absl::Status TurnLog::Fold(
    const std::function<bool(const std::string&, const Turn&)>& runs,
    bool drop_damaged) {
  std::map<std::string, Turn> turns;
  std::set<int64_t> kept;
  if (!drop_damaged) kept = damaged_rows_;
  int64_t last_row = last_row_;
  for (const auto& [session_id, turn] : turns_) {
    if (!runs(session_id, turn) || (turn.damaged && drop_damaged)) continue;
    Turn& folded = turns[session_id] = turn;
    if (!turn.damaged) folded.rows = {++last_row};
    kept.insert(folded.rows.begin(), folded.rows.end());
  }
  if (kept.empty() && last_row_ > 0) {
    const bool empty = turns_.empty() && damaged_rows_.empty();
    kept.insert(empty ? last_row_ : ++last_row);
  }
  absl::Status status = database_->Run("BEGIN");
  if (status.ok()) status = WriteFolded(turns, kept);
  if (status.ok()) status = database_->Run("COMMIT");
  if (!status.ok()) {
    if (database_->InTransaction()) (void)database_->Run("ROLLBACK");
    return status;
  }
  turns_ = std::move(turns);
  last_row_ = last_row;
  turns_of_row_.clear();
  // So that the newest row goes when a newer one comes.
  if (kept.count(last_row_) > 0 && damaged_rows_.count(last_row_) == 0) {
    turns_of_row_[last_row_] = 0;
  }
  for (const auto& [session_id, turn] : turns_) {
    for (const int64_t row : turn.rows) ++turns_of_row_[row];
  }
  if (drop_damaged) damaged_rows_.clear();
  return absl::OkStatus();
}

absl::Status TurnLog::WriteFolded(const std::map<std::string, Turn>& turns,
                                  const std::set<int64_t>& kept) {
  std::set<int64_t> missing = kept;
  std::vector<int64_t> gone;
  TXL_ASSIGN_OR_RETURN(Statement all,
                       database_->Prepare("SELECT seq FROM log"));
  while (true) {
    TXL_ASSIGN_OR_RETURN(const bool more, all.Step());
    if (!more) break;
    if (missing.erase(all.Int(0)) == 0) gone.push_back(all.Int(0));
  }
  for (const auto& [session_id, turn] : turns) {
    if (turn.damaged) continue;
    const JournalTokens tokens{turn.from, turn.ids, turn.events};
    const int64_t seq = turn.rows.front();
    TXL_RETURN_IF_ERROR(
        InsertRow(seq, BeginText(session_id, *turn.intent, turn.begun) +
                           AppendText(session_id, tokens)));
    missing.erase(seq);
  }
  for (const int64_t seq : missing) TXL_RETURN_IF_ERROR(InsertRow(seq, ""));
  for (const int64_t seq : gone) {
    TXL_RETURN_IF_ERROR(erase_.Bind(seq).Run());
  }
  return absl::OkStatus();
}

absl::Status TurnLog::InsertRow(int64_t seq, const std::string& entries) {
  return insert_.Bind(seq)
      .BindBlob(entries)
      .Bind(LogRowCrc(seq, entries))
      .Run();
}

void TurnLog::Add(const JournalTokens& tokens, Turn& turn) {
  if (turn.ids.empty()) turn.from = tokens.from;
  const auto next = turn.from + static_cast<int64_t>(turn.ids.size());
  if (tokens.from != next || !turn.intent.has_value()) turn.damaged = true;
  if (turn.damaged) return;
  turn.ids.insert(turn.ids.end(), tokens.ids.begin(), tokens.ids.end());
  turn.events.insert(turn.events.end(), tokens.events.begin(),
                     tokens.events.end());
}

void TurnLog::Remember(const std::string& session_id) {
  const auto [before, first] = before_.try_emplace(session_id);
  if (!first) return;
  const auto found = turns_.find(session_id);
  if (found == turns_.end()) return;
  before->second.existed = true;
  before->second.ids = found->second.ids.size();
  before->second.events = found->second.events.size();
  before->second.damaged = found->second.damaged;
}

void TurnLog::Begin(const std::string& session_id, const TurnIntent& intent,
                    absl::Time now) {
  Take(session_id);
  Turn& turn = turns_[session_id];
  turn.intent = intent;
  turn.begun = now;
  written_[session_id] += BeginText(session_id, intent, now);
}

void TurnLog::Append(const std::string& session_id,
                     const JournalTokens& tokens) {
  // Nobody asked for the turn.
  if (Find(session_id) == nullptr) Begin(session_id, {}, absl::UnixEpoch());
  Remember(session_id);
  Add(tokens, turns_[session_id]);
  written_[session_id] += AppendText(session_id, tokens);
}

TurnLog::Turn TurnLog::Take(const std::string& session_id) {
  Remember(session_id);
  written_.erase(session_id);
  const auto found = turns_.find(session_id);
  if (found == turns_.end()) return Turn();
  Turn turn = std::move(found->second);
  turns_.erase(found);
  Before& before = before_.at(session_id);
  if (before.existed && !before.whole.has_value()) {
    left_.insert(left_.end(), turn.rows.begin(), turn.rows.end());
    Turn whole = turn;
    whole.ids.resize(before.ids);
    whole.events.resize(before.events);
    whole.damaged = before.damaged;
    before.whole = std::move(whole);
  }
  return turn;
}

absl::Status TurnLog::Write() {
  // Rows that no turn needed after the last transaction, too.
  for (auto row = turns_of_row_.begin(); row != turns_of_row_.end(); ++row) {
    const bool newest = row->first == last_row_ && written_.empty();
    if (row->second > 0 || newest) continue;
    TXL_RETURN_IF_ERROR(erase_.Bind(row->first).Run());
    erased_.push_back(row->first);
  }
  if (written_.empty()) return absl::OkStatus();
  std::string entries;
  for (const auto& [session_id, written] : written_) entries += written;
  return InsertRow(last_row_ + 1, entries);
}

void TurnLog::Committed() {
  for (const int64_t row : erased_) turns_of_row_.erase(row);
  if (!written_.empty()) {
    ++last_row_;
    for (const auto& [session_id, written] : written_) {
      turns_[session_id].rows.push_back(last_row_);
      ++turns_of_row_[last_row_];
    }
  }
  for (const int64_t row : left_) --turns_of_row_[row];
  before_.clear();
  written_.clear();
  left_.clear();
  erased_.clear();
}

void TurnLog::RolledBack() {
  for (auto& [session_id, before] : before_) {
    if (before.whole.has_value()) {
      turns_[session_id] = *std::move(before.whole);
    } else if (before.existed) {
      Turn& turn = turns_.at(session_id);
      turn.ids.resize(before.ids);
      turn.events.resize(before.events);
      turn.damaged = before.damaged;
    } else {
      turns_.erase(session_id);
    }
  }
  before_.clear();
  written_.clear();
  left_.clear();
  erased_.clear();
}

const TurnLog::Turn* TurnLog::Find(const std::string& session_id) const {
  const auto found = turns_.find(session_id);
  return found == turns_.end() ? nullptr : &found->second;
}

}  // namespace txl
