#pragma once

// Which session lives in which slot. Owned by the scheduler's loop; not
// thread-safe. It knows no device: the loop clears, exports and imports.

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace txl {

struct SlotEntry {
  std::optional<uint64_t> key;  // of the session; none: the slot is free
  bool running = false;         // a turn works on it, or it is leaving
  bool leaving = false;         // the session moves out; another will come
  bool ended = false;           // the session ended while its turn ran
  // Rows before this position are the session's (its tokens but the last).
  int64_t rows = 0;
  // The store's image of the session equals these rows, so that nothing has to
  // be exported.
  bool image_current = false;
  absl::Duration last_use;  // end of its last turn, Clock::Monotonic
};

class SlotTable {
 public:
  explicit SlotTable(int32_t slots) : entries_(slots) {}

  absl::Span<const SlotEntry> entries() const { return entries_; }
  SlotEntry& at(int32_t slot) { return entries_[slot]; }

  // A running turn of session `key` takes a free slot. REQUIRES: free.
  void Assign(int32_t slot, uint64_t key);
  void Free(int32_t slot);
  // The session is gone: its slot is free at once, or when its turn leaves.
  void EndSession(uint64_t key);
  // The turn leaves: the session stays with `rows` rows, unless it ended.
  void Leave(int32_t slot, int64_t rows, absl::Duration now);

  int64_t used() const;

 private:
  std::vector<SlotEntry> entries_;
};

}  // namespace txl
