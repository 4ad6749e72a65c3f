// SessionTables: what it is asked.

#include <algorithm>
#include <utility>

#include "model/base/status_macros.h"
#include "server/session/session_name.h"
#include "server/store/session_tables.h"
#include "server/store/store_errors.h"

namespace txl {
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
