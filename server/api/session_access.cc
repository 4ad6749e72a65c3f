#include "server/api/session_access.h"

#include <utility>

#include "server/session/session_errors.h"

namespace txl {

SessionAccess::SessionAccess(SessionStore* store, Scheduler* scheduler,
                             TaskThread* callbacks, SessionStorage storage)
    : store_(store), callbacks_(callbacks), storage_(std::move(storage)) {
  storage_.sink.wake = [scheduler] { scheduler->Wake(); };
}

void SessionAccess::With(const SessionName& session,
                         std::function<void(const absl::Status&)> then,
                         bool acquires) const {
  if (!store_->MayBeStored(session, acquires)) return then(absl::OkStatus());
  store_->Prepare(session, [access = *this, session, then = std::move(then),
                            acquires](const absl::Status& status) {
    access.callbacks_->Run([access, session, then, acquires, status] {
      // The store's own methods say which error it is.
      if (absl::IsNotFound(status)) return then(absl::OkStatus());
      if (status.ok() && access.store_->HasLeft(session)) {
        return access.With(session, then, acquires);
      }
      then(status);
    });
  });
}

void SessionAccess::End(
    const SessionName& session,
    std::function<void(const absl::StatusOr<bool>&)> then) const {
  With(session, [access = *this, session,
                 then = std::move(then)](const absl::Status& found) {
    if (absl::IsDataLoss(found) || absl::IsFailedPrecondition(found)) {
      return access.store_->DiscardStored(
          session, [callbacks = access.callbacks_, then] {
            callbacks->Run([then] { then(false); });
          });
    }
    absl::Status status = found;
    if (status.ok()) status = access.store_->Delete(session);
    if (!status.ok()) return then(status);
    then(true);
  });
}

void SessionAccess::WhenStored(
    std::function<void(const absl::Status&)> then) const {
  SessionJournal* const journal = storage_.sink.journal;
  if (journal == nullptr) return then(absl::OkStatus());
  journal->WhenDurable(
      journal->last_entry(),
      [callbacks = callbacks_, then = std::move(then)](absl::Status status) {
        callbacks->Run([then, status] { then(status); });
      });
}

void SessionAccess::WhenStoredOf(
    std::shared_ptr<const SessionClaim> claim,
    std::function<void(const absl::Status&)> then) const {
  WhenStored([claim = std::move(claim),
              then = std::move(then)](const absl::Status& stored) {
    const bool lost = stored.ok() && claim != nullptr && claim->moved();
    then(lost ? MovedError(*claim) : stored);
  });
}

void SessionAccess::WhenChanged(
    const SessionName& session,
    std::function<void(const absl::Status&)> then) const {
  WhenStored([shared = storage_.shared, session,
              then = std::move(then)](const absl::Status& stored) {
    const bool refusable = stored.ok() && shared != nullptr;
    then(refusable ? shared->TakeRefusal(session.text()) : stored);
  });
}

std::shared_ptr<TokenSink> SessionAccess::StoredSink(
    const SessionLease& lease, std::shared_ptr<TokenSink> sink,
    std::shared_ptr<CancelToken> cancel) const {
  if (storage_.sink.journal == nullptr) return sink;
  DurableSinkOptions options = storage_.sink;
  options.claim = lease.claim();
  return std::make_shared<DurableSink>(std::move(options), std::move(sink),
                                       std::move(cancel));
}

std::optional<StoreUse> SessionAccess::Use() const {
  if (storage_.sink.journal == nullptr) return std::nullopt;
  const JournalStatus journal = storage_.sink.journal->status();
  StoreUse use;
  use.durability = storage_.sink.tokens_wait ? "token" : "turn";
  if (storage_.late) use.durability += ", up to 2 s";
  use.state = journal.failed ? "failed" : journal.full ? "full" : "serving";
  if (storage_.shared != nullptr && !journal.full &&
      storage_.shared->Silent() >= kStoreSilence) {
    use.state = "unreachable";
  }
  use.sessions = journal.sessions;
  use.database_bytes = journal.bytes;
  if (storage_.images != nullptr) use.image_bytes = storage_.images->Bytes();
  use.tokens_waiting = journal.tokens_waiting;
  use.tokens_written = journal.tokens_written;
  use.limit_bytes = journal.limit_bytes;
  use.commits = journal.commits;
  use.commit_seconds = journal.commit_seconds;
  use.acquired = journal.acquired;
  use.taken_over = journal.taken_over;
  use.fenced = journal.fenced;
  use.busy = journal.busy;
  use.tokens_lost = journal.tokens_lost;
  return use;
}

}  // namespace txl
