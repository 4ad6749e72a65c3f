#include "server/scheduler/slot_table.h"

#include <algorithm>
#include <cassert>

namespace txl {

void SlotTable::Assign(int32_t slot, uint64_t key) {
  SlotEntry& entry = entries_[slot];
  assert(!entry.key.has_value());
  entry = SlotEntry();
  entry.key = key;
  entry.running = true;
}

void SlotTable::Free(int32_t slot) { entries_[slot] = SlotEntry(); }

void SlotTable::EndSession(uint64_t key) {
  for (SlotEntry& entry : entries_) {
    if (entry.key != key) continue;
    if (entry.running) {
      entry.ended = true;
    } else {
      entry = SlotEntry();
    }
  }
}

void SlotTable::Leave(int32_t slot, int64_t rows, absl::Duration now) {
  SlotEntry& entry = entries_[slot];
  if (entry.ended) {
    Free(slot);
    return;
  }
  entry.running = false;
  entry.rows = rows;
  entry.last_use = now;
}

int64_t SlotTable::used() const {
  return std::count_if(
      entries_.begin(), entries_.end(),
      [](const SlotEntry& entry) { return entry.key.has_value(); });
}

}  // namespace txl
