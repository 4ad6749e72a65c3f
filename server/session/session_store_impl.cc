#include "server/session/session_store_impl.h"

#include <algorithm>
#include <utility>

#include "server/session/session_errors.h"

namespace txl {

void SessionStore::Impl::Expire() {
  const absl::Duration now = clock->Monotonic();
  while (!idle.empty() && idle.begin()->first <= now) {
    const RecordPtr record = by_key.at(idle.begin()->second);
    ended.Remember(record->name.text(), SessionEnd::kExpired);
    if (options.shared == nullptr) {
      RemoveStored(*record);
    } else {
      ExpireStored(record->name);
    }
    End(record);
  }
}

absl::StatusOr<RecordPtr> SessionStore::Impl::Find(
    const SessionName& name) const {
  const auto found = by_name.find(name);
  if (found != by_name.end()) return found->second;
  const std::optional<SessionEnd> how = ended.Find(name.text());
  if (!how.has_value()) return SessionUnknownError();
  return *how == SessionEnd::kExpired ? SessionExpiredError()
                                      : SessionEvictedError();
}

absl::StatusOr<RecordPtr> SessionStore::Impl::Add(SessionName name,
                                                  absl::Duration ttl) {
  const absl::Status room = MakePlace(name.empty());
  if (!room.ok()) return room;
  auto record = std::make_shared<SessionRecord>();
  record->key = next_key++;
  record->name = std::move(name);
  record->ttl = ttl;
  record->create_time = clock->Now();
  record->last_use_time = record->create_time;
  record->last_use = clock->Monotonic();
  if (options.vocabulary != nullptr) {
    record->detokenizer = options.vocabulary->NewDetokenizer();
  }
  by_key[record->key] = record;
  if (!record->temporary()) {
    ended.Forget(record->name.text());
    by_name[record->name] = record;
    record->counted = true;
    quota.Add(record->name.tenant(), 0);
  } else {
    ++temporary_count;
  }
  session_bytes += kSessionRecordBytes;
  ++created_count;
  return record;
}

void SessionStore::Impl::BecomeIdle(SessionRecord& record) {
  record.last_use_time = clock->Now();
  record.last_use = clock->Monotonic();
  Park(record);
}

void SessionStore::Impl::Park(const SessionRecord& record) {
  idle.emplace(record.ExpiresAt(), record.key);
  if (record.position() == 0) empty_idle.emplace(record.last_use, record.key);
  if (record.journaled && !record.in_slot) {
    away_idle.emplace(record.last_use, record.key);
  }
}

void SessionStore::Impl::Unpark(const SessionRecord& record) {
  idle.erase({record.ExpiresAt(), record.key});
  empty_idle.erase({record.last_use, record.key});
  away_idle.erase({record.last_use, record.key});
}

void SessionStore::Impl::BecomeBusy(SessionRecord& record) {
  Unpark(record);
  record.busy = true;
  ++busy_count;
}

Handover SessionStore::Impl::EndTurn(const RecordPtr& record) {
  wake_pending = true;
  Charge(*record, record->position());  // what it did not use of its reserve
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
  record->busy = false;
  record->running = TurnIdentity();
  --busy_count;
  if (record->temporary() || record->delete_requested) {
    End(record);
  } else if (moved) {
    LetGo(record);
  } else {
    BecomeIdle(*record);
  }
  return handover;
}

void SessionStore::Impl::End(const RecordPtr& record) {
  Forget(record);
  ++ended_count;
}

void SessionStore::Impl::Forget(const RecordPtr& record) {
  Unpark(*record);
  DropImage(*record);
  DropTurnRecord(*record);
  // A deleted session's id may belong to a newer one by now.
  const auto named = by_name.find(record->name);
  if (named != by_name.end() && named->second == record) by_name.erase(named);
  by_key.erase(record->key);
  in_slot.erase(record->key);
  Charge(*record, 0, 0);
  Uncount(*record);
  session_bytes -= kSessionRecordBytes;
  if (record->temporary()) --temporary_count;
  if (record->claim != nullptr) {
    options.shared->Drop(record->name.text(), record->claim);
  }
  dropped.push_back(record);
  ended_keys.push_back(record->key);
  wake_pending = true;
}

void SessionStore::Impl::DropImage(SessionRecord& record) {
  if (record.image == nullptr) return;
  image_bytes -= record.image->Bytes();
  dropped.push_back(std::exchange(record.image, nullptr));
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
  if (options.journal != nullptr) {
    info.durable_position =
        std::min(info.position, record.durable.At(DurableOf(record.name)));
  }
  return info;
}

StoreLock::StoreLock(SessionStore::Impl* impl) : impl_(impl) {
  impl_->mutex.Lock();
}

StoreLock::~StoreLock() {
  const std::vector<std::shared_ptr<const void>> dropped =
      std::exchange(impl_->dropped, {});
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
