#include "server/scheduler/slot_table.h"

#include <cassert>

namespace txl {

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
