#include "server/session/session_store_impl.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/session/session_errors.h"

namespace txl {

void SessionStore::Impl::Expire() {
  const absl::Duration now = clock->Monotonic();
  while (!idle.empty() && idle.begin()->first <= now) {
    const RecordPtr record = by_key.at(idle.begin()->second);
    expired.Remember(record->session_id);
    End(record);
  }
}

absl::StatusOr<RecordPtr> SessionStore::Impl::Find(
    const std::string& session_id) const {
  const auto found = by_id.find(session_id);
  if (found != by_id.end()) return found->second;
  if (expired.Contains(session_id)) return SessionExpiredError();
  return SessionUnknownError();
}

absl::StatusOr<RecordPtr> SessionStore::Impl::Add(std::string session_id,
                                                  absl::Duration ttl) {
  if (static_cast<int64_t>(by_key.size()) >= options.max_sessions) {
    return NoSessionMemoryError(absl::StrCat("the server holds its maximum of ",
                                             options.max_sessions, " sessions"),
                                options.memory_retry);
  }
  auto record = std::make_shared<SessionRecord>();
  record->key = next_key++;
  record->session_id = std::move(session_id);
  record->ttl = ttl;
  record->create_time = clock->Now();
  record->last_use_time = record->create_time;
  record->last_use = clock->Monotonic();
  if (options.vocabulary != nullptr) {
    record->detokenizer = options.vocabulary->NewDetokenizer();
  }
  by_key[record->key] = record;
  if (!record->temporary()) {
    expired.Forget(record->session_id);
    by_id[record->session_id] = record;
  }
  ++created_count;
  return record;
}

void SessionStore::Impl::BecomeIdle(SessionRecord& record) {
  record.last_use_time = clock->Now();
  record.last_use = clock->Monotonic();
  idle.emplace(record.ExpiresAt(), record.key);
}

void SessionStore::Impl::BecomeBusy(SessionRecord& record) {
  idle.erase({record.ExpiresAt(), record.key});
  record.busy = true;
  ++busy_count;
}

Handover SessionStore::Impl::EndTurn(const RecordPtr& record) {
  wake_pending = true;
  Handover handover;
  handover.next = std::exchange(record->next, nullptr);
  handover.deleted = record->delete_requested;
  record->superseded = false;
  if (handover.next != nullptr && !handover.deleted) return handover;
  record->busy = false;
  record->running = TurnIdentity();
  --busy_count;
  if (record->temporary() || handover.deleted) {
    End(record);
  } else {
    BecomeIdle(*record);
  }
  return handover;
}

void SessionStore::Impl::End(const RecordPtr& record) {
  idle.erase({record->ExpiresAt(), record->key});
  DropImage(*record);
  DropTurnRecord(*record);
  // A deleted session's id may belong to a newer one by now.
  const auto named = by_id.find(record->session_id);
  if (named != by_id.end() && named->second == record) by_id.erase(named);
  by_key.erase(record->key);
  ended_keys.push_back(record->key);
  ++ended_count;
  wake_pending = true;
}

void SessionStore::Impl::DropImage(SessionRecord& record) {
  if (record.image == nullptr) return;
  image_bytes -= record.image->Bytes();
  record.image = nullptr;
}

SessionInfo SessionStore::Impl::Info(const SessionRecord& record) const {
  SessionInfo info;
  info.session_id = record.session_id;
  info.state = record.busy ? SessionState::kBusy : SessionState::kIdle;
  info.position = record.position();
  info.create_time = record.create_time;
  // A running turn uses its session until now.
  info.last_use_time = record.busy ? clock->Now() : record.last_use_time;
  info.expire_time = info.last_use_time + record.ttl;
  info.ttl = record.ttl;
  if (record.image != nullptr) {
    info.memory_bytes = record.image->Bytes();
  } else if (record.position() > 1) {
    info.memory_bytes = options.bytes_per_slot;
  }
  info.last_turn = record.last_turn;
  return info;
}

StoreLock::StoreLock(SessionStore::Impl* impl) : impl_(impl) {
  impl_->mutex.Lock();
}

StoreLock::~StoreLock() {
  std::function<void()> wakeup;
  if (impl_->wake_pending) {
    impl_->wake_pending = false;
    wakeup = impl_->wakeup;
  }
  if (wakeup == nullptr) {
    impl_->mutex.Unlock();
    return;
  }
  ++impl_->wakeups_running;
  impl_->mutex.Unlock();
  wakeup();
  wakeup = nullptr;  // SetWakeup waits also for what the function holds
  absl::MutexLock lock(&impl_->mutex);
  --impl_->wakeups_running;
}

}  // namespace txl
