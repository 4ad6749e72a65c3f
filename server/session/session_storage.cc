// SessionStore: sessions that leave memory and come back, whoever changes them
// meanwhile.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "model/base/status_macros.h"
#include "server/session/restored_turn.h"
#include "server/session/session_errors.h"
#include "server/session/session_name.h"
#include "server/session/session_store.h"
#include "server/session/session_store_impl.h"

namespace txl {
namespace {

// Stored sessions that are ended in one go.
constexpr int64_t kExpiredAtOnce = 256;
// Sessions that leave memory in one go.
constexpr int kAwayAtOnce = 1'000;

}  // namespace

bool SessionStore::MayBeStored(const SessionName& session, bool acquires) {
  if (impl_->options.journal == nullptr) return false;
  if (!ValidateSessionId(session.id()).ok()) return false;
  absl::MutexLock lock(&impl_->mutex);
  const RecordPtr here = impl_->table.Named(session);
  const bool shared = impl_->options.shared != nullptr;
  if (here == nullptr) {
    return shared || !impl_->ended.Find(session.text()).has_value();
  }
  here->loaded = impl_->clock->Monotonic();  // it is about to be used
  return shared && !acquires;
}

void SessionStore::Prepare(const SessionName& session,
                           std::function<void(const absl::Status&)> then) {
  const bool shared = impl_->options.shared != nullptr;
  std::shared_ptr<SessionClaim> held;
  {
    absl::MutexLock lock(&impl_->mutex);
    const RecordPtr here = impl_->table.Named(session);
    if (here == nullptr || shared) {
      const bool first =
          impl_->away.Await(session, std::exchange(then, nullptr));
      if (!first) return;
      if (here != nullptr) held = here->claim;
    }
  }
  if (then != nullptr) return then(absl::OkStatus());
  if (shared) return impl_->Look(session, std::move(held));
  impl_->options.journal->Load(
      session.text(), [this, session](absl::StatusOr<StoredSession> stored) {
        if (stored.ok()) return impl_->Bring(session, *std::move(stored));
        const bool unknown = absl::IsNotFound(stored.status());
        impl_->EndLoad(session, unknown ? absl::OkStatus() : stored.status());
      });
}

bool SessionStore::HasLeft(const SessionName& session) const {
  absl::MutexLock lock(&impl_->mutex);
  return impl_->options.shared != nullptr &&
         impl_->table.Named(session) == nullptr;
}

void SessionStore::Impl::Look(const SessionName& name,
                              std::shared_ptr<SessionClaim> held) {
  options.shared->Refresh(
      name.text(), held,
      [this, name, held](absl::StatusOr<SharedSession> found) {
        {
          StoreLock lock(this);
          const RecordPtr here = table.Named(name);
          const bool ours = here != nullptr && here->busy && held != nullptr &&
                            here->claim == held;
          if (ours && held->moved()) {
            // What is being acquired is known soon, and is looked at then.
            if (here->acquiring) {
              here->looked_for = true;
              return;
            }
            here->journaled = false;
            Unname(*here);
          } else if (here != nullptr && !here->busy &&
                     absl::IsNotFound(found.status())) {
            LetGo(here);
          }
        }
        if (found.ok() && found->stored.has_value()) {
          return Bring(name, *std::move(found->stored));
        }
        EndLoad(name, found.status());
      });
}

void SessionStore::Impl::LookAgain(const SessionName& name) {
  std::shared_ptr<SessionClaim> held;
  {
    absl::MutexLock lock(&mutex);
    const RecordPtr here = table.Named(name);
    if (here != nullptr) held = here->claim;
  }
  Look(name, std::move(held));
}

void SessionStore::Impl::Bring(const SessionName& name, StoredSession stored) {
  const auto held = std::make_shared<StoredSession>(std::move(stored));
  const auto restore = [this, name, held](std::optional<KeptImage> kept) {
    absl::Status status;
    {
      StoreLock lock(this);
      status = Restore(std::move(*held), std::move(kept));
    }
    EndLoad(name, status);
  };
  if (options.images == nullptr) return restore(std::nullopt);
  options.images->Get(name.text(), restore);
}

void SessionStore::Impl::EndLoad(const SessionName& name,
                                 const absl::Status& status) {
  AwaySessions::Waited waited;
  {
    absl::MutexLock lock(&mutex);
    waited = away.TakeWaiting(name);
  }
  for (const AwaySessions::Then& then : waited.now) then(status);
  if (waited.again) LookAgain(name);
}

absl::Status SessionStore::Impl::Restore(StoredSession stored,
                                         std::optional<KeptImage> kept) {
  const StoredHead& head = stored.head;
  const SessionName name = SessionName::OfText(head.session_id);
  if (const RecordPtr here = table.Named(name)) {
    if (options.shared == nullptr || here->busy) return absl::OkStatus();
    LetGo(here);
  }
  const int64_t position = stored.token_ids.size();
  if (head.last_use + head.ttl <= clock->Now()) {
    EndStored(name, position);
    return SessionExpiredError();
  }
  TXL_ASSIGN_OR_RETURN(RestoredTurn turn,
                       RestoreTurn(stored, options.vocabulary));
  TXL_RETURN_IF_ERROR(MakePlace(TokenSequence::BytesFor(position), false));
  const RecordPtr record = table.Load(head);
  memory.Add(*record);
  ended.Forget(name.text());
  memory.Charge(*record, position);
  if (options.shared == nullptr) {
    quota.Remove(name.tenant(), position);  // where it was
  } else {
    record->claim = stored.claim;
    record->open_turn = turn.broke_off;
    options.shared->Hold(name.text(), record->claim);
  }
  record->journaled = true;
  record->token_ids = std::move(stored.token_ids);
  record->durable = DurablePosition(position);
  record->detokenizer = std::move(turn.detokenizer);
  record->last_turn = head.last_turn;
  record->earlier_requests = RequestHistory(head.earlier_requests);
  record->SetLastTurn(std::move(turn.last_turn), options.remembered_requests);
  record->intent = std::move(turn.intent);
  if (turn.broke_off && !record->open_turn) entries.End(*record, turn.record);
  const int64_t bytes = turn.record == nullptr ? 0 : turn.record->Bytes();
  memory.SetTurnRecord(*record, std::move(turn.record), bytes);
  if (kept.has_value()) RestoreImage(*kept, *record);
  table.Park(*record);
  return absl::OkStatus();
}

void SessionStore::Impl::RestoreImage(const KeptImage& kept,
                                      SessionRecord& record) {
  const int64_t rows = kept.image->position;
  const bool fits =
      rows > 0 && rows < record.position() &&
      kept.ids_digest == DigestOfIds(IdsOfRows(record, rows), rows);
  if (!fits) {
    options.images->Remove(record.name.text());
    return;
  }
  record.image_rows = rows;
  if (MakeImageRoom(kept.image->Bytes())) memory.SetImage(record, kept.image);
}

// A turn on a session that other servers change too.

void SessionStore::Impl::Own(const RecordPtr& record,
                             const TurnIdentity& identity,
                             LeaseCallback later) {
  const std::string session_id = record->name.text();
  options.shared->Acquire(
      session_id, identity, record->claim,
      [this, record, session_id,
       later = std::move(later)](absl::StatusOr<SharedSession> acquired) {
        if (!acquired.ok()) return NotOwned(record, later, acquired.status());
        const auto found =
            std::make_shared<SharedSession>(*std::move(acquired));
        const auto owned = [this, record, found,
                            later](std::optional<KeptImage> kept) {
          Owned(record, std::move(*found), std::move(kept), later);
        };
        if (!found->stored.has_value() || options.images == nullptr) {
          return owned(std::nullopt);
        }
        options.images->Get(session_id, owned);
      });
}

void SessionStore::Impl::Owned(RecordPtr record, SharedSession found,
                               std::optional<KeptImage> kept,
                               const LeaseCallback& later) {
  const SessionName name = record->name;
  absl::Status status;
  bool looked_for = false;
  {
    StoreLock lock(this);
    looked_for = EndAcquire(*record);
    // A deleted one ends with its lease, whatever it holds.
    if (found.stored.has_value() && !record->delete_requested) {
      absl::StatusOr<RecordPtr> other =
          Replace(record, *std::move(found.stored), std::move(kept));
      status = other.status();
      if (other.ok()) record = *std::move(other);
    }
    if (status.ok()) {
      record->owned = true;
      if (std::exchange(record->open_turn, false)) {
        entries.End(*record, record->turn_record);
      }
    } else {
      options.shared->Hold(name.text(), found.claim);
      options.shared->Release(name.text());
      options.shared->Drop(name.text(), found.claim);
      // A newer copy goes on: what it enters is its own.
      const RecordPtr newer = table.Named(name);
      if (newer != nullptr) options.shared->Hold(name.text(), newer->claim);
    }
  }
  if (looked_for) LookAgain(name);
  if (!status.ok()) return NotOwned(record, later, status);
  later(SessionLease(store, record));
}

void SessionStore::Impl::NotOwned(const RecordPtr& record,
                                  const LeaseCallback& later,
                                  const absl::Status& status) {
  LeaseCallback next;
  bool looked_for = false;
  {
    StoreLock lock(this);
    looked_for = EndAcquire(*record);
    if (absl::IsNotFound(status)) {
      record->journaled = false;
      record->claim->moved_to = SessionClaim::kGone;
    }
    // One that waits hears the same; none can begin to wait for what ends here.
    next = std::exchange(record->next, nullptr);
    if (table.OfKey(record->key) != nullptr) EndTurn(record);
  }
  if (looked_for) LookAgain(record->name);
  later(status);
  if (next != nullptr) next(status);
}

bool SessionStore::Impl::EndAcquire(SessionRecord& record) {
  record.acquiring = false;
  return std::exchange(record.looked_for, false);
}

absl::StatusOr<RecordPtr> SessionStore::Impl::Replace(
    const RecordPtr& record, StoredSession stored,
    std::optional<KeptImage> kept) {
  LetGo(record);
  // Where the record's copy moved away, the name may be a newer one's, which
  // has a lease of its own.
  const RecordPtr newer = table.Named(record->name);
  if (newer != nullptr && newer->busy) {
    return SessionBusyError(options.busy_retry);
  }
  TXL_RETURN_IF_ERROR(Restore(std::move(stored), std::move(kept)));
  RecordPtr other = table.Named(record->name);
  table.BecomeBusy(*other);
  other->running = record->running;
  other->superseded = record->superseded.load();
  other->next = std::exchange(record->next, nullptr);
  return other;
}

void SessionStore::Impl::MoveAway(const std::string& session_id,
                                  const std::shared_ptr<SessionClaim>& claim) {
  StoreLock lock(this);
  const RecordPtr record = table.Named(SessionName::OfText(session_id));
  if (record == nullptr || record->claim != claim) return;
  record->journaled = false;
  if (!record->busy) return LetGo(record);
  // Its turn sees it within a step, and whoever comes finds the session where
  // it is.
  Unname(*record);
}

// Sessions that are stored and not in memory are counted, expire and are
// discarded.

void SessionStore::Impl::RemoveStored(SessionRecord& record) {
  // A turn that still runs on it tells nobody any more: the id may belong to a
  // newer session.
  if (!std::exchange(record.journaled, false)) return;
  away.Removed(record.name, entries.Remove(record.name));
}

void SessionStore::Impl::EndStored(const SessionName& name, int64_t position) {
  ended.Remember(name.text(), SessionEnd::kExpired);
  if (options.shared == nullptr) quota.Remove(name.tenant(), position);
  away.Removed(name, entries.Expire(name));
}

// A read shows what is on stable storage. A session that is not in memory has
// nothing that is not, unless it was removed.
bool SessionStore::Impl::IsOnlyStored(const SessionName& name) const {
  return table.Named(name) == nullptr &&
         away.IsSettled(name, entries.durable());
}

void SessionStore::DiscardStored(const SessionName& session,
                                 std::function<void()> done) {
  const auto held = std::make_shared<std::optional<int64_t>>();
  impl_->options.journal->Positions(
      session.text(),
      [held](const StoredPosition& stored) { *held = stored.position; },
      [this, session, held, done = std::move(done)](const absl::Status&) {
        {
          StoreLock lock(impl_.get());
          if (impl_->IsOnlyStored(session)) {
            // Nothing where its row cannot even be read.
            if (held->has_value() && impl_->options.shared == nullptr) {
              impl_->quota.Remove(session.tenant(), **held);
            }
            impl_->away.Removed(session, impl_->entries.Remove(session));
          }
        }
        done();
      });
}

void SessionStore::TidyStored() {
  SessionJournal* const journal = impl_->options.journal;
  if (journal == nullptr) return;
  for (int gone = 0; gone < kAwayAtOnce; ++gone) {
    StoreLock lock(impl_.get());
    if (!impl_->StoreOldestAway(impl_->options.store_away_after)) break;
  }
  {
    absl::MutexLock lock(&impl_->mutex);
    impl_->away.Forget(impl_->entries.durable());
  }
  journal->ListExpired(
      impl_->clock->Now(), kExpiredAtOnce,
      [this](const absl::StatusOr<std::vector<StoredPosition>>& expired) {
        if (!expired.ok()) return;
        StoreLock lock(impl_.get());
        for (const StoredPosition& stored : *expired) {
          const SessionName name = SessionName::OfText(stored.session_id);
          // The time-to-live of one that is in memory is known better here.
          if (impl_->IsOnlyStored(name)) {
            impl_->EndStored(name, stored.position);
          }
        }
      });
}

absl::Status SessionStore::CountStored() {
  if (impl_->options.journal == nullptr || !impl_->options.limits_of ||
      impl_->options.shared != nullptr) {
    return absl::OkStatus();
  }
  absl::Notification told;
  absl::Status status;
  impl_->options.journal->Positions(
      "",
      [this](const StoredPosition& stored) {
        absl::MutexLock lock(&impl_->mutex);
        impl_->quota.Add(SessionName::OfText(stored.session_id).tenant(),
                         stored.position);
      },
      [&](const absl::Status& read) {
        status = read;
        told.Notify();
      });
  told.WaitForNotification();
  return status;
}

}  // namespace txl
