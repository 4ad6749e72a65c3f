#include "server/session/session_table.h"

#include <algorithm>
#include <memory>

namespace txl {
namespace {

// Two nodes with an id of 64 characters each, as the allocator rounds them up.
constexpr int64_t kBytesOfOne = 320;

}  // namespace

void EndedIds::Remember(const std::string& session_id, SessionEnd how) {
  Forget(session_id);
  oldest_first_.push_back({session_id, how});
  by_id_[session_id] = --oldest_first_.end();
  if (static_cast<int64_t>(by_id_.size()) > capacity_) ForgetOldest();
}

void EndedIds::Forget(const std::string& session_id) {
  const auto found = by_id_.find(session_id);
  if (found == by_id_.end()) return;
  oldest_first_.erase(found->second);
  by_id_.erase(found);
}

bool EndedIds::ForgetOldest() {
  if (oldest_first_.empty()) return false;
  by_id_.erase(oldest_first_.front().session_id);
  oldest_first_.pop_front();
  return true;
}

std::optional<SessionEnd> EndedIds::Find(const std::string& session_id) const {
  const auto found = by_id_.find(session_id);
  if (found == by_id_.end()) return std::nullopt;
  return found->second->how;
}

int64_t EndedIds::Bytes() const {
  return static_cast<int64_t>(by_id_.size()) * kBytesOfOne;
}

namespace {

// Sessions that are looked at for one that may leave memory.
constexpr int kLookedAtForAway = 16;

}  // namespace

RecordPtr SessionTable::OfKey(uint64_t key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

RecordPtr SessionTable::Named(const SessionName& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

std::vector<RecordPtr> SessionTable::NamedAfter(const SessionName& after,
                                                size_t count) const {
  std::vector<RecordPtr> some;
  for (auto next = by_name_.upper_bound(after);
       next != by_name_.end() && next->first.tenant() == after.tenant() &&
       some.size() < count;
       ++next) {
    some.push_back(next->second);
  }
  return some;
}

RecordPtr SessionTable::Add(SessionName name, absl::Duration ttl) {
  auto record = std::make_shared<SessionRecord>();
  record->key = next_key_++;
  record->name = std::move(name);
  record->ttl = ttl;
  by_key_[record->key] = record;
  if (record->temporary()) {
    ++temporary_;
  } else {
    by_name_[record->name] = record;
  }
  return record;
}

RecordPtr SessionTable::Create(SessionName name, absl::Duration ttl) {
  RecordPtr record = Add(std::move(name), ttl);
  record->create_time = record->last_use_time = clock_->Now();
  record->last_use = clock_->Monotonic();
  ++counts_.created;
  return record;
}

RecordPtr SessionTable::Load(const StoredHead& head) {
  RecordPtr record = Add(SessionName::OfText(head.session_id), head.ttl);
  record->create_time = head.create_time;
  record->last_use_time = head.last_use;
  record->loaded = clock_->Monotonic();
  record->last_use = record->loaded - std::max(clock_->Now() - head.last_use,
                                               absl::ZeroDuration());
  ++counts_.loaded;
  return record;
}

void SessionTable::BecomeBusy(SessionRecord& record) {
  Unpark(record);
  record.busy = true;
  ++counts_.busy;
}

void SessionTable::BecomeIdle(SessionRecord& record) {
  record.last_use_time = clock_->Now();
  record.last_use = clock_->Monotonic();
  Park(record);
}

void SessionTable::Park(SessionRecord& record) {
  if (std::exchange(record.busy, false)) --counts_.busy;
  idle_.emplace(record.ExpiresAt(), record.key);
  if (record.position() == 0) empty_idle_.emplace(record.last_use, record.key);
  if (record.journaled && !record.in_slot) {
    away_idle_.emplace(record.last_use, record.key);
  }
}

void SessionTable::Unpark(const SessionRecord& record) {
  idle_.erase({record.ExpiresAt(), record.key});
  empty_idle_.erase({record.last_use, record.key});
  away_idle_.erase({record.last_use, record.key});
}

void SessionTable::SetInSlot(SessionRecord& record, bool in_slot) {
  if (!record.busy) Unpark(record);
  record.in_slot = in_slot;
  if (!record.busy) Park(record);
  if (in_slot) {
    in_slot_.insert(record.key);
  } else {
    in_slot_.erase(record.key);
  }
}

void SessionTable::ChangeKey(const RecordPtr& record) {
  by_key_.erase(record->key);
  in_slot_.erase(record->key);
  ended_keys_.push_back(record->key);
  record->key = next_key_++;
  record->in_slot = false;
  by_key_[record->key] = record;
}

void SessionTable::Unname(const SessionRecord& record) {
  // A deleted session's name may belong to a newer one by now.
  const auto named = by_name_.find(record.name);
  if (named != by_name_.end() && named->second.get() == &record) {
    by_name_.erase(named);
  }
}

void SessionTable::End(const RecordPtr& record) {
  Remove(record);
  ++counts_.ended;
}

void SessionTable::StoreAway(const RecordPtr& record) {
  Remove(record);
  ++counts_.stored_away;
}

void SessionTable::Remove(const RecordPtr& record) {
  if (std::exchange(record->busy, false)) --counts_.busy;
  Unpark(*record);
  Unname(*record);
  by_key_.erase(record->key);
  in_slot_.erase(record->key);
  if (record->temporary()) --temporary_;
  ended_keys_.push_back(record->key);
}

RecordPtr SessionTable::Expired() const {
  if (idle_.empty() || idle_.begin()->first > clock_->Monotonic()) {
    return nullptr;
  }
  return by_key_.at(idle_.begin()->second);
}

RecordPtr SessionTable::OldestEmpty(absl::Duration unused) const {
  if (empty_idle_.empty()) return nullptr;
  const auto& [last_use, key] = *empty_idle_.begin();
  if (clock_->Monotonic() - last_use < unused) return nullptr;
  return by_key_.at(key);
}

RecordPtr SessionTable::OldestAway(absl::Duration unused,
                                   uint64_t durable) const {
  const absl::Duration now = clock_->Monotonic();
  int looked_at = 0;
  for (const auto& [last_use, key] : away_idle_) {
    const RecordPtr& record = by_key_.at(key);
    if (now - std::max(last_use, record->loaded) >= unused &&
        record->durable.Settled(durable)) {
      return record;
    }
    if (++looked_at == kLookedAtForAway) break;
  }
  return nullptr;
}

SessionCounts SessionTable::counts() const {
  SessionCounts counts = counts_;
  counts.idle = static_cast<int64_t>(idle_.size());
  return counts;
}

StoreReport SessionTable::report() const {
  StoreReport report;
  report.named = static_cast<int64_t>(by_name_.size());
  report.temporary = temporary_;
  report.deleted = size() - report.named - temporary_;
  report.empty = empty();
  report.away = static_cast<int64_t>(away_idle_.size());
  report.in_slot = static_cast<int64_t>(in_slot_.size());
  return report;
}

}  // namespace txl
