// SessionTables: what it is asked.

#include <algorithm>
#include <utility>

#include "model/base/status_macros.h"
#include "server/session/session_name.h"
#include "server/store/session_tables.h"
#include "server/store/store_errors.h"

namespace txl {

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
    info.position = list_.Int(1);
    const absl::StatusOr<KeptHead> head = DecodeHead(list_.Blob(2));
    // A damaged one is listed by its name.
    if (head.ok()) info.head = head->head;
    info.head.session_id = session_id;
    const TurnLog::Turn* const turn = log_->Find(session_id);
    const bool runs = turn != nullptr && !turn->EndedBefore(list_.Int(3));
    if (runs && turn->from == info.position) {
      info.position += static_cast<int64_t>(turn->ids.size());
    }
    page.push_back(std::move(info));
  }
}

absl::StatusOr<std::vector<std::string>> SessionTables::ListExpired(
    absl::Time now, int64_t count) {
  std::vector<std::string> ids;
  list_expired_.Bind(absl::ToUnixMillis(now));
  while (static_cast<int64_t>(ids.size()) < count) {
    TXL_ASSIGN_OR_RETURN(const bool more, list_expired_.Step());
    if (!more) return ids;
    const std::string session_id =
        SessionName(list_expired_.Blob(0), list_expired_.Blob(1)).text();
    absl::StatusOr<bool> expired = HasExpired(session_id, now);
    if (!expired.ok()) {
      list_expired_.Reset();
      return expired.status();
    }
    if (*expired) ids.push_back(session_id);
  }
  list_expired_.Reset();
  return ids;
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
