// SessionStore: sessions that other servers change, too.

#include <memory>
#include <utility>

#include "model/base/status_macros.h"
#include "server/session/session_errors.h"
#include "server/session/session_store.h"
#include "server/session/session_store_impl.h"

namespace txl {

void SessionStore::Impl::Look(const SessionName& name,
                              std::shared_ptr<SessionClaim> held) {
  options.shared->Refresh(
      name.text(), std::move(held),
      [this, name](absl::StatusOr<SharedSession> found) {
        if (found.ok() && found->stored.has_value()) {
          return Bring(name, *std::move(found->stored));
        }
        const bool gone = absl::IsNotFound(found.status());
        if (gone) {
          StoreLock lock(this);
          const auto here = by_name.find(name);
          if (here != by_name.end() && !here->second->busy) {
            LetGo(here->second);
          }
        }
        EndLoad(name, gone ? absl::OkStatus() : found.status());
      });
}

void SessionStore::Impl::Own(SessionStore* store, RecordPtr record,
                             TurnIdentity identity, LeaseCallback later) {
  std::shared_ptr<SessionClaim> held = record->claim;
  const std::string session_id = record->name.text();
  options.shared->Acquire(
      session_id, identity, std::move(held),
      [this, store, record, session_id,
       later = std::move(later)](absl::StatusOr<SharedSession> acquired) {
        if (!acquired.ok()) {
          return NotOwned(store, record, later, acquired.status());
        }
        const auto found =
            std::make_shared<SharedSession>(*std::move(acquired));
        const auto owned = [this, store, record, found,
                            later](std::optional<KeptImage> kept) {
          Owned(store, record, found, std::move(kept), later);
        };
        if (!found->stored.has_value() || options.images == nullptr) {
          return owned(std::nullopt);
        }
        options.images->Get(session_id, owned);
      });
}

void SessionStore::Impl::Owned(SessionStore* store, RecordPtr record,
                               std::shared_ptr<SharedSession> found,
                               std::optional<KeptImage> kept,
                               const LeaseCallback& later) {
  absl::Status status;
  {
    StoreLock lock(this);
    // A deleted one ends with its lease, whatever it holds.
    if (found->stored.has_value() && !record->delete_requested) {
      absl::StatusOr<RecordPtr> other =
          Replace(record, *std::move(found->stored), std::move(kept));
      status = other.status();
      if (other.ok()) record = *std::move(other);
    }
    if (status.ok()) {
      record->owned = true;
      if (std::exchange(record->open_turn, false)) {
        EnterEnd(*record, record->turn_record);
      }
    } else {
      options.shared->Hold(record->name.text(), found->claim);
      options.shared->Release(record->name.text());
      options.shared->Drop(record->name.text(), found->claim);
    }
  }
  if (!status.ok()) return NotOwned(store, record, later, status);
  later(SessionLease(store, record));
}

void SessionStore::Impl::NotOwned(SessionStore* store, RecordPtr record,
                                  LeaseCallback later,
                                  const absl::Status& status) {
  LeaseCallback next;
  bool here = false;
  {
    StoreLock lock(this);
    next = std::exchange(record->next, nullptr);
    here = by_key.count(record->key) > 0;
    if (absl::IsNotFound(status)) {
      record->journaled = false;
      record->claim->moved_to = SessionClaim::kGone;
    }
  }
  if (here) SessionLease(store, record).Release();
  later(status);
  if (next != nullptr) next(status);
}

absl::StatusOr<RecordPtr> SessionStore::Impl::Replace(
    const RecordPtr& record, StoredSession stored,
    std::optional<KeptImage> kept) {
  const SessionName name = record->name;
  const TurnIdentity running = record->running;
  record->busy = false;
  --busy_count;
  LetGo(record);
  const absl::Status restored = Restore(std::move(stored), std::move(kept));
  const auto found = by_name.find(name);
  if (!restored.ok()) return restored;
  if (found == by_name.end()) return SessionExpiredError();
  BecomeBusy(*found->second);
  found->second->running = running;
  found->second->superseded = record->superseded.load();
  found->second->next = std::exchange(record->next, nullptr);
  return found->second;
}

void SessionStore::Impl::MoveAway(const std::string& session_id,
                                  const std::shared_ptr<SessionClaim>& claim) {
  StoreLock lock(this);
  const auto found = by_name.find(SessionName::OfText(session_id));
  if (found == by_name.end() || found->second->claim != claim) return;
  const RecordPtr record = found->second;
  record->journaled = false;
  if (!record->busy) return LetGo(record);
  // Its turn sees it within a step, and whoever comes finds the session where
  // it is.
  Uncount(*record);
  by_name.erase(found);
  wake_pending = true;
}

}  // namespace txl
