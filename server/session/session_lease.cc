// SessionLease: the running turn's side of a session.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/base/error.h"
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

const SessionName& SessionLease::name() const { return record_->name; }

uint64_t SessionLease::key() const { return record_->key; }

int64_t SessionLease::position() const { return record_->position(); }

const TokenSequence& SessionLease::token_ids() const {
  return record_->token_ids;
}

bool SessionLease::delete_requested() const {
  return record_->delete_requested;
}

bool SessionLease::superseded() const { return record_->superseded; }

std::optional<absl::Status> SessionLease::moved() const {
  const SessionClaim* const claim = record_->claim.get();
  if (claim == nullptr || !claim->moved()) return std::nullopt;
  return MovedError(*claim);
}

std::shared_ptr<const SessionClaim> SessionLease::claim() const {
  return record_->claim;
}

void SessionLease::Append(absl::Span<const int32_t> ids,
                          absl::Span<const TokenEvent> said) {
  SessionStore::Impl& impl = *store_->impl_;
  absl::MutexLock lock(&impl.mutex);
  impl.entries.Append(*record_, impl.TakeOn(*record_, ids), said);
}

void SessionLease::AppendWithEnd(absl::Span<const int32_t> ids) {
  SessionStore::Impl& impl = *store_->impl_;
  absl::MutexLock lock(&impl.mutex);
  JournalTokens tokens = impl.TakeOn(*record_, ids);
  if (record_->journaled) record_->tokens_of_end = std::move(tokens);
}

void SessionLease::Begin(TurnIntent intent) {
  SessionStore::Impl& impl = *store_->impl_;
  absl::MutexLock lock(&impl.mutex);
  record_->intent = std::move(intent);
  impl.entries.Begin(*record_);
}

std::optional<TurnIntent> SessionLease::IntentOf(
    const TurnIdentity& identity) const {
  absl::MutexLock lock(&store_->impl_->mutex);
  const std::optional<TurnIntent>& intent = record_->intent;
  const bool same = intent.has_value() && intent->identity == identity;
  return same ? intent : std::nullopt;
}

int64_t SessionLease::room() const {
  const int64_t most = store_->impl_->options.max_session_tokens;
  return std::max<int64_t>(most - position(), 0);
}

absl::Status SessionLease::Reserve(int64_t tokens) {
  SessionStore::Impl& impl = *store_->impl_;
  StoreLock lock(&impl);
  const int64_t most = impl.options.max_session_tokens;
  if (tokens > most - position()) {
    return OverLimitError(
        "session_id",
        absl::StrCat("the session holds ", position(), " of at most ", most,
                     " tokens, so it has no room for ", tokens, " more"));
  }
  const int64_t charged = record_->charged_tokens;
  const int64_t wanted = position() + tokens;
  if (record_->counted) {
    TXL_RETURN_IF_ERROR(impl.quota.MayGrow(name().tenant(), charged, wanted));
  }
  const int64_t more =
      TokenSequence::BytesFor(wanted) - TokenSequence::BytesFor(charged);
  if (more > 0) {
    TXL_RETURN_IF_ERROR(impl.MakeRoom(more, record_->temporary()));
  }
  impl.memory.Charge(*record_, wanted);
  return absl::OkStatus();
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
  record_->SetLastTurn(std::move(turn), impl.options.remembered_requests);
  impl.entries.End(*record_, record);
  impl.memory.SetTurnRecord(*record_, std::move(record), bytes);
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
  if (!handover.ended.ok()) {
    handover.next(handover.ended);
  } else {
    handover.next(SessionLease(store, record));
  }
}

}  // namespace txl
