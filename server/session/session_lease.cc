// SessionLease: the running turn's side of a session.

#include <algorithm>
#include <utility>

#include "server/session/session_errors.h"
#include "server/session/session_record.h"
#include "server/session/session_store.h"
#include "server/session/session_store_impl.h"

namespace txl {

SessionLease::SessionLease(SessionStore* store,
                           std::shared_ptr<SessionRecord> record)
    : store_(store), record_(std::move(record)) {}

SessionLease::SessionLease(SessionLease&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      record_(std::move(other.record_)) {}

SessionLease& SessionLease::operator=(SessionLease&& other) noexcept {
  if (this != &other) {
    Release();
    store_ = std::exchange(other.store_, nullptr);
    record_ = std::move(other.record_);
  }
  return *this;
}

SessionLease::~SessionLease() { Release(); }

const std::string& SessionLease::session_id() const {
  return record_->session_id;
}

uint64_t SessionLease::key() const { return record_->key; }

int64_t SessionLease::position() const { return record_->position(); }

const TokenSequence& SessionLease::token_ids() const {
  return record_->token_ids;
}

bool SessionLease::delete_requested() const {
  return record_->delete_requested;
}

bool SessionLease::superseded() const { return record_->superseded; }

void SessionLease::Append(absl::Span<const int32_t> ids) {
  SessionStore::Impl& impl = *store_->impl_;
  absl::MutexLock lock(&impl.mutex);
  record_->token_ids.Append(ids);
  if (record_->position() > record_->charged_tokens) {
    impl.Charge(*record_, record_->position());
  }
}

int64_t SessionLease::room() const {
  const int64_t most = store_->impl_->options.max_session_tokens;
  return std::max<int64_t>(most - position(), 0);
}

absl::Status SessionLease::Reserve(int64_t tokens) {
  StoreLock lock(store_->impl_.get());
  return store_->impl_->Reserve(*record_, tokens);
}

std::unique_ptr<Detokenizer> SessionLease::CloneDetokenizer() const {
  if (record_->detokenizer == nullptr) return nullptr;
  return record_->detokenizer->Clone();
}

void SessionLease::SetDetokenizer(std::unique_ptr<Detokenizer> detokenizer) {
  absl::MutexLock lock(&store_->impl_->mutex);
  record_->detokenizer.swap(detokenizer);
}

void SessionLease::SetLastTurn(LastTurn turn,
                               std::shared_ptr<const TurnRecord> record) {
  const int64_t bytes = record == nullptr ? 0 : record->Bytes();
  SessionStore::Impl& impl = *store_->impl_;
  StoreLock lock(&impl);
  const std::string& earlier = record_->last_turn.request_id;
  if (!earlier.empty() && earlier != turn.request_id) {
    record_->earlier_requests.Add(earlier, impl.options.remembered_requests);
  }
  record_->last_turn = std::move(turn);
  impl.KeepTurnRecord(*record_, std::move(record), bytes);
}

absl::StatusOr<std::shared_ptr<const TurnRecord>> SessionLease::RecordFor(
    const TurnIdentity& identity) const {
  absl::MutexLock lock(&store_->impl_->mutex);
  return txl::RecordFor(identity, record_->turn_record, record_->last_turn,
                        record_->earlier_requests);
}

void SessionLease::Release() {
  if (record_ == nullptr) return;
  // Emptied first: the wake-up may look at this lease.
  const RecordPtr record = std::move(record_);
  SessionStore* const store = std::exchange(store_, nullptr);
  Handover handover;
  {
    StoreLock lock(store->impl_.get());
    handover = store->impl_->EndTurn(record);
  }
  if (handover.next == nullptr) return;
  if (handover.deleted) {
    handover.next(SessionDeletedError());
  } else {
    handover.next(SessionLease(store, record));
  }
}

}  // namespace txl
