#include "server/scheduler/session_slots.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <memory>
#include <utility>

#include "server/scheduler/turn.h"

namespace txl {
namespace {

// Rows of a session between turns: its tokens but the last.
int64_t CommittedRows(const SessionLease& lease) {
  return std::max<int64_t>(lease.position() - 1, 0);
}

// Rows that a session of so many rows has beyond its image's, which are the
// first of them.
int64_t MissingRows(const StateImage* image, int64_t rows) {
  return rows - (image == nullptr ? 0 : image->position);
}

template <typename T>
bool IsReady(const std::future<T>& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

bool TurnSlot::ready() const { return !save.valid() || IsReady(save); }

bool TurnSlot::arriving() const { return import.valid() && !IsReady(import); }

SessionSlots::SessionSlots(StepRunner* runner, SessionStore* store,
                           Metrics* metrics, Clock* clock)
    : runner_(runner),
      store_(store),
      metrics_(metrics),
      clock_(clock),
      table_(runner->info().slots) {
  metrics_->Update(
      [this](Snapshot& s) { s.slots_total = runner_->info().slots; });
}

void SessionSlots::DropEnded() {
  const std::vector<uint64_t> ended = store_->TakeEndedKeys();
  if (ended.empty()) return;
  for (uint64_t key : ended) table_.EndSession(key);
  PublishUse();
}

SlotCandidates SessionSlots::CandidatesFor(const SessionLease& lease) const {
  return table_.CandidatesFor(lease.key(), clock_->Monotonic());
}

TurnSlot SessionSlots::Claim(const SlotChoice& choice,
                             const SessionLease& lease,
                             int64_t rows_before_commit) {
  TurnSlot slot;
  slot.index = choice.slot;
  slot.claimed_as = choice.kind;
  if (choice.kind == SlotChoice::Kind::kFree) return slot;
  const SlotTable::Entry& entry = table_.at(choice.slot);
  switch (choice.kind) {
    case SlotChoice::Kind::kResident: {
      table_.Occupy(choice.slot, /*leaving=*/false);
      const int64_t rows = CommittedRows(lease);
      if (rows_before_commit > runner_->info().spare_rows && rows > 0 &&
          !entry.image_current) {
        slot.save = runner_->Export(choice.slot, rows);
      }
      break;
    }
    case SlotChoice::Kind::kEvict:
      table_.Occupy(choice.slot, /*leaving=*/true);
      if (!entry.image_current) {
        slot.save = runner_->Export(choice.slot, entry.rows);
      }
      break;
    default:
      break;
  }
  return slot;
}

absl::Status SessionSlots::AwaitSave(TurnSlot& slot) {
  if (!slot.save.valid()) return absl::OkStatus();
  const absl::Status status = Save(slot);
  if (!status.ok()) DropClaim(slot);
  return status;
}

void SessionSlots::Enter(TurnSlot& slot, const SessionLease& lease) {
  slot.entered = clock_->Monotonic();
  if (slot.claimed_as == SlotChoice::Kind::kResident) return;
  if (slot.claimed_as == SlotChoice::Kind::kEvict) MoveOut(slot.index);
  MoveIn(slot, lease);
}

void SessionSlots::DropClaim(const TurnSlot& slot) {
  if (slot.claimed_as == SlotChoice::Kind::kFree) return;
  table_.Vacate(slot.index);
  PublishUse();
}

void SessionSlots::Committed(const TurnSlot& slot) {
  if (slot.index < 0) return;
  const SlotTable::Entry& entry = table_.at(slot.index);
  if (!entry.image_current) return;
  table_.SetImageCurrent(slot.index, false);
  store_->DropImage(*entry.key);
}

void SessionSlots::Leave(const TurnSlot& slot, const SessionLease& lease,
                         bool intact, absl::Duration last_use) {
  if (slot.index < 0) return;
  const int64_t rows = CommittedRows(lease);
  if (intact && rows > 0) {
    table_.Leave(slot.index, rows, last_use);
  } else {
    table_.Free(slot.index);
    store_->SetInSlot(lease.key(), false);
  }
  PublishUse();
}

void SessionSlots::LeaveEmpty(const TurnSlot& slot, const SessionLease& lease,
                              absl::Duration last_use) {
  if (slot.index < 0) return;
  Leave(slot, lease, /*intact=*/true, last_use);
  // It is free already where the session has ended meanwhile.
  if (table_.at(slot.index).key.has_value()) MoveOut(slot.index);
}

void SessionSlots::DropBadImage(const SessionLease& lease) {
  store_->DropImage(lease.key());
}

bool SessionSlots::SaveIdle(uint64_t key) {
  const std::optional<int32_t> slot = table_.IdleSlotOf(key);
  if (!slot.has_value() || table_.at(*slot).image_current) return false;
  const bool known =
      std::any_of(saves_.begin(), saves_.end(),
                  [key](const IdleSave& save) { return save.key == key; });
  if (known) return false;
  const int64_t rows = table_.at(*slot).rows;
  saves_.push_back({key, *slot, rows, runner_->Export(*slot, rows)});
  return true;
}

int64_t SessionSlots::PollSaves() {
  int64_t ended = 0;
  while (saving() && IsReady(saves_.front().image)) {
    Keep(saves_.front());
    saves_.erase(saves_.begin());
    ++ended;
  }
  return ended;
}

void SessionSlots::Keep(IdleSave& save) {
  absl::StatusOr<StateImage> image = save.image.get();
  if (!image.ok() || table_.IdleSlotOf(save.key) != save.slot) return;
  // A turn has been here since. (A rewind gives the session another key.)
  if (table_.at(save.slot).rows != save.rows) return;
  if (!store_->PutImage(save.key, *std::move(image)).ok()) return;
  table_.SetImageCurrent(save.slot, true);
}

std::vector<int32_t> SessionSlots::TakeFree(int64_t count) {
  std::vector<int32_t> slots;
  while (static_cast<int64_t>(slots.size()) < count && table_.free() > 0) {
    slots.push_back(table_.TakeFree());
  }
  PublishUse();
  return slots;
}

void SessionSlots::GiveBack(const std::vector<int32_t>& slots) {
  if (slots.empty()) return;
  for (const int32_t slot : slots) table_.GiveBack(slot);
  PublishUse();
}

// The image is of the session that lives in the slot: the one that moves out,
// or the turn's own.
absl::Status SessionSlots::Save(TurnSlot& slot) {
  const SlotTable::Entry& entry = table_.at(slot.index);
  absl::StatusOr<StateImage> image = slot.save.get();
  absl::Status status = image.ok()
                            ? store_->PutImage(*entry.key, *std::move(image))
                            : image.status();
  if (status.ok()) {
    table_.SetImageCurrent(slot.index, true);
    return status;
  }
  // Without memory, the budget's or the machine's, the tokens have to do.
  if (absl::IsResourceExhausted(status)) return absl::OkStatus();
  // A session that ended just now needs no image.
  const bool ended = entry.leaving && !store_->GetKeyState(*entry.key).exists;
  return ended ? absl::OkStatus()
               : StepFailed("the session's state could not be saved", status);
}

void SessionSlots::MoveOut(int32_t slot) {
  const double idle =
      absl::ToDoubleSeconds(clock_->Monotonic() - table_.at(slot).last_use);
  const uint64_t key = *table_.at(slot).key;
  table_.Free(slot);
  store_->SetInSlot(key, false);
  metrics_->Update([idle](Snapshot& s) {
    ++s.sessions_moved_out;
    s.distributions.idle_before_evict_seconds.Observe(idle);
  });
  PublishUse();
}

void SessionSlots::MoveIn(TurnSlot& slot, const SessionLease& lease) {
  // The slot of a session that ended may not have been freed yet.
  table_.Free(slot.index);
  table_.Assign(slot.index, lease.key());
  store_->SetInSlot(lease.key(), true);
  PublishUse();
  const std::shared_ptr<const StateImage> image = store_->GetImage(lease.key());
  const int64_t rows = CommittedRows(lease);
  const int64_t missing = MissingRows(image.get(), rows);
  const bool useful = image != nullptr && missing >= 0 &&
                      missing + 1 < runner_->info().rebuild_ids;
  if (!useful) {
    if (slot.taken.rows == 0) runner_->Clear(slot.index);
    slot.rebuild_ids = rows > 0 ? runner_->info().rebuild_ids : 0;
    return;
  }
  slot.import = runner_->Import(slot.index, image);
  if (runner_->info().derives) {
    slot.rows_to_derive = slot.rows_underived = image->rows;
  }
  // The last token is fed by the turn itself.
  if (missing > 0) slot.rebuild_ids = missing + 1;
  table_.SetImageCurrent(slot.index, missing == 0);
  metrics_->Update([](Snapshot& s) { ++s.sessions_moved_in; });
}

void SessionSlots::PublishUse() {
  const int64_t used = table_.used();
  metrics_->Update([used](Snapshot& s) { s.slots_used = used; });
}

SlotChoice ChooseSlot(const SlotCandidates& slots, absl::Duration min_idle) {
  using Kind = SlotChoice::Kind;
  if (slots.own.has_value()) {
    return slots.own->leaving ? SlotChoice{Kind::kWait, -1}
                              : SlotChoice{Kind::kResident, slots.own->slot};
  }
  if (slots.free.has_value()) return {Kind::kFree, *slots.free};
  if (slots.idle_longest.has_value() && slots.idle_longest->idle >= min_idle) {
    return {Kind::kEvict, slots.idle_longest->slot};
  }
  if (slots.parked.has_value() && slots.parked->idle >= min_idle) {
    return {Kind::kYield, slots.parked->slot};
  }
  return {slots.running ? Kind::kWait : Kind::kRefuse, -1};
}

SlotTable::SlotTable(int32_t slots) : entries_(slots) {
  for (int32_t slot = 0; slot < slots; ++slot) {
    free_.insert(free_.end(), slot);
  }
}

SlotCandidates SlotTable::CandidatesFor(uint64_t key,
                                        absl::Duration now) const {
  SlotCandidates slots;
  const auto own = slot_of_.find(key);
  if (own != slot_of_.end()) {
    slots.own = {own->second, entries_[own->second].leaving};
  }
  if (!free_.empty()) slots.free = *free_.begin();
  if (!idle_.empty()) {
    slots.idle_longest = {idle_.begin()->second, now - idle_.begin()->first};
  }
  slots.running = free_.size() + idle_.size() < entries_.size();
  return slots;
}

std::optional<int32_t> SlotTable::IdleSlotOf(uint64_t key) const {
  const auto found = slot_of_.find(key);
  if (found == slot_of_.end() || entries_[found->second].running) {
    return std::nullopt;
  }
  return found->second;
}

int32_t SlotTable::TakeFree() {
  const int32_t slot = *free_.begin();
  free_.erase(free_.begin());
  return slot;
}

void SlotTable::Assign(int32_t slot, uint64_t key) {
  Entry& entry = entries_[slot];
  assert(!entry.key.has_value());
  assert(slot_of_.count(key) == 0);
  free_.erase(slot);
  slot_of_[key] = slot;
  entry.key = key;
  entry.running = true;
}

void SlotTable::Occupy(int32_t slot, bool leaving) {
  Entry& entry = entries_[slot];
  assert(entry.key.has_value() && !entry.running);
  idle_.erase({entry.last_use, slot});
  entry.running = true;
  entry.leaving = leaving;
}

void SlotTable::Vacate(int32_t slot) {
  const Entry& entry = entries_[slot];
  Leave(slot, entry.rows, entry.last_use);
}

void SlotTable::Free(int32_t slot) {
  Entry& entry = entries_[slot];
  if (!entry.key.has_value()) return;
  if (!entry.running) idle_.erase({entry.last_use, slot});
  slot_of_.erase(*entry.key);
  free_.insert(slot);
  entry = Entry();
}

void SlotTable::SetImageCurrent(int32_t slot, bool current) {
  entries_[slot].image_current = current;
}

void SlotTable::EndSession(uint64_t key) {
  const auto found = slot_of_.find(key);
  if (found == slot_of_.end()) return;
  Entry& entry = entries_[found->second];
  if (entry.running) {
    entry.ended = true;
  } else {
    Free(found->second);
  }
}

void SlotTable::Leave(int32_t slot, int64_t rows, absl::Duration last_use) {
  Entry& entry = entries_[slot];
  assert(entry.key.has_value() && entry.running);
  if (entry.ended) {
    Free(slot);
    return;
  }
  entry.running = false;
  entry.leaving = false;
  entry.rows = rows;
  entry.last_use = last_use;
  idle_.emplace(last_use, slot);
}

}  // namespace txl
