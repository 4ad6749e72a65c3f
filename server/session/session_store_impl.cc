#include "server/session/session_store_impl.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/session/session_errors.h"
#include "server/session/session_info.h"
#include "server/session/session_record.h"
#include "server/session/session_store.h"

namespace txl {
namespace {

// What named sessions may take of `all`.
int64_t NamedShare(int64_t all, const SessionStoreOptions& options) {
  return all - static_cast<int64_t>(static_cast<double>(all) *
                                    options.temporary_reserve);
}

}  // namespace

SessionStore::Impl::Impl(SessionStore* of,
                         const SessionStoreOptions& store_options,
                         Clock* store_clock)
    : store(of),
      options(store_options),
      clock(store_clock),
      quota(options.limits_of, options.bytes_per_slot),
      memory(options.image_bytes, options.turn_record_bytes, &quota),
      table(clock),
      ended(options.remembered_ends),
      entries({options.journal, options.shared, options.images}, clock),
      away(options.shared != nullptr) {}

StoreLock::StoreLock(SessionStore::Impl* impl) : impl_(impl) {
  impl_->mutex.Lock();
}

StoreLock::~StoreLock() {
  const std::vector<std::shared_ptr<const void>> dropped =
      impl_->memory.TakeDropped();
  std::function<void()> wakeup = impl_->wakeup.Take();
  impl_->mutex.Unlock();
  if (wakeup == nullptr) return;
  wakeup();
  wakeup = nullptr;  // SetWakeup waits also for what the function holds
  absl::MutexLock lock(&impl_->mutex);
  impl_->wakeup.Ended();
}

void SessionStore::Impl::Expire() {
  while (const RecordPtr record = table.Expired()) {
    ended.Remember(record->name.text(), SessionEnd::kExpired);
    if (record->journaled) {
      away.Removed(record->name, entries.Expire(record->name));
    }
    End(record);
  }
}

absl::StatusOr<RecordPtr> SessionStore::Impl::Find(const SessionName& name) {
  TXL_RETURN_IF_ERROR(ValidateSessionId(name.id()));
  Expire();
  if (RecordPtr record = table.Named(name)) return record;
  const std::optional<SessionEnd> how = ended.Find(name.text());
  if (!how.has_value()) return SessionUnknownError();
  return *how == SessionEnd::kExpired ? SessionExpiredError()
                                      : SessionEvictedError();
}

absl::StatusOr<RecordPtr> SessionStore::Impl::FindIdle(
    const SessionName& name) {
  TXL_ASSIGN_OR_RETURN(RecordPtr record, Find(name));
  if (record->busy) return SessionBusyError(options.busy_retry);
  return record;
}

absl::StatusOr<RecordPtr> SessionStore::Impl::Add(SessionName name,
                                                  absl::Duration ttl,
                                                  int64_t bytes) {
  TXL_RETURN_IF_ERROR(MakePlace(bytes, name.empty()));
  RecordPtr record = table.Create(std::move(name), ttl);
  memory.Add(*record);
  if (!record->temporary()) ended.Forget(record->name.text());
  if (options.vocabulary != nullptr) {
    record->detokenizer = options.vocabulary->NewDetokenizer();
  }
  return record;
}

void SessionStore::Impl::End(const RecordPtr& record) {
  table.End(record);
  Forget(record);
}

void SessionStore::Impl::LetGo(const RecordPtr& record) {
  table.StoreAway(record);
  Forget(record);
  if (options.shared == nullptr) {
    quota.Add(record->name.tenant(), record->position());  // where it goes
  }
}

void SessionStore::Impl::Forget(const RecordPtr& record) {
  memory.Remove(record);
  if (record->claim != nullptr) {
    options.shared->Drop(record->name.text(), record->claim);
  }
  wakeup.Ask();
}

void SessionStore::Impl::Unname(SessionRecord& record) {
  memory.Uncount(record);
  table.Unname(record);
  wakeup.Ask();
}

Handover SessionStore::Impl::EndTurn(const RecordPtr& record) {
  wakeup.Ask();
  memory.Charge(*record, record->position());  // not what it only reserved
  const bool moved = record->claim != nullptr && record->claim->moved();
  Handover handover;
  handover.next = std::exchange(record->next, nullptr);
  if (record->delete_requested) {
    handover.ended = SessionDeletedError();
  } else if (moved) {
    handover.ended = MovedError(*record->claim);
  }
  record->superseded = false;
  if (handover.next != nullptr && handover.ended.ok()) return handover;
  if (std::exchange(record->owned, false) && record->journaled) {
    options.shared->Release(record->name.text());
  }
  record->running = TurnIdentity();
  if (record->temporary() || record->delete_requested) {
    End(record);
  } else if (moved) {
    LetGo(record);
  } else {
    table.BecomeIdle(*record);
  }
  return handover;
}

absl::Status SessionStore::Impl::MakePlace(int64_t bytes, bool temporary) {
  TXL_RETURN_IF_ERROR(MakeRoom(kSessionRecordBytes + bytes, temporary));
  const auto full = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return table.size() >= options.max_sessions ||
           (!temporary && table.size() - table.temporary() >=
                              NamedShare(options.max_sessions, options));
  };
  while (full()) {
    if (StoreOldestAway(options.empty_grace) || EndOldestEmpty()) continue;
    return NoSessionMemoryError(absl::StrCat("the server holds its maximum of ",
                                             options.max_sessions, " sessions"),
                                options.memory_retry);
  }
  return absl::OkStatus();
}

absl::Status SessionStore::Impl::MakeRoom(int64_t bytes, bool temporary) {
  const int64_t limit =
      temporary ? options.id_bytes : NamedShare(options.id_bytes, options);
  const int64_t empty = table.empty() * kSessionRecordBytes;
  // Nobody gives way for what does not fit anyway.
  bool fits = bytes <= limit - (memory.id_bytes() - empty) ||
              options.journal != nullptr;
  while (fits && memory.id_bytes() + ended.Bytes() + bytes > limit) {
    fits = StoreOldestAway(options.empty_grace) || ended.ForgetOldest() ||
           EndOldestEmpty();
  }
  if (fits) return absl::OkStatus();
  return NoSessionMemoryError(
      absl::StrCat("sessions and their tokens fill their budget of ",
                   options.id_bytes, " bytes"),
      options.memory_retry);
}

bool SessionStore::Impl::MakeImageRoom(int64_t bytes) {
  while (!memory.HasImageRoom(bytes)) {
    if (!StoreOldestAway(options.empty_grace)) return false;
  }
  return true;
}

bool SessionStore::Impl::EndOldestEmpty() {
  // Another server may have filled it since.
  if (options.shared != nullptr) return false;
  const RecordPtr record = table.OldestEmpty(options.empty_grace);
  if (record == nullptr) return false;
  ended.Remember(record->name.text(), SessionEnd::kEvicted);
  RemoveStored(*record);
  End(record);
  return true;
}

bool SessionStore::Impl::StoreOldestAway(absl::Duration unused) {
  if (options.journal == nullptr) return false;
  const RecordPtr record = table.OldestAway(unused, entries.durable());
  if (record == nullptr) return false;
  LetGo(record);
  return true;
}

JournalTokens SessionStore::Impl::TakeOn(SessionRecord& record,
                                         absl::Span<const int32_t> ids) {
  JournalTokens tokens;
  tokens.from = record.position();
  if (record.journaled) tokens.ids.assign(ids.begin(), ids.end());
  record.token_ids.Append(ids);
  if (record.position() > record.charged_tokens) {
    memory.Charge(record, record.position());
  }
  return tokens;
}

SessionInfo SessionStore::Impl::Info(const SessionRecord& record) const {
  SessionInfo info;
  info.session_id = record.name.id();
  info.state = record.busy ? SessionState::kBusy : SessionState::kIdle;
  info.position = record.position();
  info.create_time = record.create_time;
  // A running turn uses its session until now.
  info.last_use_time = record.busy ? clock->Now() : record.last_use_time;
  info.expire_time = info.last_use_time + record.ttl;
  info.ttl = record.ttl;
  info.in_slot = record.in_slot;
  if (record.image != nullptr) {
    info.memory_bytes = record.image->Bytes();
  } else if (record.position() > 1) {
    info.memory_bytes = options.bytes_per_slot;
  }
  info.memory_bytes += TokenSequence::BytesFor(record.position());
  info.last_turn = record.last_turn;
  info.durable_position = DurablePositionOf(record);
  return info;
}

int64_t SessionStore::Impl::DurablePositionOf(
    const SessionRecord& record) const {
  if (options.journal == nullptr) return 0;
  return std::min(record.position(), record.durable.At(entries.durable()));
}

}  // namespace txl
