// SessionStore: who runs a session's turns, and what they leave behind.

#include <iterator>
#include <utility>

#include "server/session/session_errors.h"
#include "server/session/session_record.h"
#include "server/session/session_store.h"
#include "server/session/session_store_impl.h"

namespace txl {

absl::StatusOr<SessionLease> SessionStore::Acquire(const SessionName& session) {
  // A turn without a name waits for nobody.
  absl::StatusOr<std::optional<SessionLease>> lease =
      AcquireFor(session, TurnIdentity(), nullptr);
  if (!lease.ok()) return lease.status();
  return **std::move(lease);
}

absl::StatusOr<std::optional<SessionLease>> SessionStore::AcquireFor(
    const SessionName& session, TurnIdentity identity, LeaseCallback later) {
  const absl::Status valid = ValidateSessionId(session.id());
  if (!valid.ok()) return valid;
  LeaseCallback waited;
  RecordPtr free;
  {
    StoreLock lock(impl_.get());
    impl_->Expire();
    absl::StatusOr<RecordPtr> found = impl_->Find(session);
    if (!found.ok()) return found.status();
    SessionRecord& record = **found;
    if (!record.busy) {
      impl_->BecomeBusy(record);
      record.running = identity;
      if (later == nullptr || record.claim == nullptr) {
        return std::optional<SessionLease>(
            SessionLease(this, *std::move(found)));
      }
      free = *std::move(found);
    } else if (!identity.named() ||
               identity.request_id != record.running.request_id) {
      return SessionBusyError(impl_->options.busy_retry);
    } else if (identity.digest != record.running.digest) {
      return OtherRequestError();
    } else {
      record.superseded = true;
      waited = std::exchange(record.next, std::move(later));
      impl_->wake_pending = true;
    }
  }
  if (free != nullptr) {
    impl_->Own(this, std::move(free), std::move(identity), std::move(later));
  }
  if (waited != nullptr) waited(SupersededError());
  return std::optional<SessionLease>();
}

void SessionStore::Impl::KeepTurnRecord(SessionRecord& record,
                                        std::shared_ptr<const TurnRecord> turn,
                                        int64_t bytes) {
  DropTurnRecord(record);
  if (turn == nullptr) return;
  turn_record_bytes += bytes;
  record.record_bytes = bytes;
  record.turn_record = std::move(turn);
  records_oldest_first.push_back(record.key);
  record.record_age = std::prev(records_oldest_first.end());
  while (turn_record_bytes > options.turn_record_bytes) {
    DropTurnRecord(*by_key.at(records_oldest_first.front()));
  }
}

void SessionStore::Impl::DropTurnRecord(SessionRecord& record) {
  if (record.turn_record == nullptr) return;
  turn_record_bytes -= record.record_bytes;
  dropped.push_back(std::exchange(record.turn_record, nullptr));
  records_oldest_first.erase(record.record_age);
}

}  // namespace txl
