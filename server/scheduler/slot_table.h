#pragma once

// Which session lives in which slot. Owned by the scheduler's loop; not
// thread-safe. It knows no device: the loop clears, exports and imports.
//
// Every call costs O(log slots) at most: sessions are found by key, empty
// slots and idle sessions stand in order.

#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/scheduler/slot_policy.h"

namespace txl {

class SlotTable {
 public:
  struct Entry {
    std::optional<uint64_t> key;  // of the session; none: the slot is free
    bool running = false;         // a turn works on it, or it is leaving
    bool leaving = false;         // the session moves out; another will come
    bool ended = false;           // the session ended while its turn ran
    // Rows before this position are the session's (its tokens but the last).
    int64_t rows = 0;
    // The store's image of the session equals these rows, so that nothing has
    // to be exported.
    bool image_current = false;
    absl::Duration last_use;  // end of its last turn, Clock::Monotonic
  };

  explicit SlotTable(int32_t slots);

  int32_t slots() const { return static_cast<int32_t>(entries_.size()); }
  const Entry& at(int32_t slot) const { return entries_[slot]; }
  // The slots that a turn of session `key` may get.
  SlotCandidates CandidatesFor(uint64_t key, absl::Duration now) const;

  // A running turn of session `key` takes a free slot. REQUIRES: free, and the
  // session lives in no other one.
  void Assign(int32_t slot, uint64_t key);
  // The idle session there is worked on again, or moves out (`leaving`).
  // REQUIRES: a session without a turn.
  void Occupy(int32_t slot, bool leaving);
  // Undoes Occupy: the session stays as it was, unless it ended.
  void Vacate(int32_t slot);
  void Free(int32_t slot);
  void SetImageCurrent(int32_t slot, bool current);
  // The session is gone: its slot is free at once, or when its turn leaves.
  void EndSession(uint64_t key);
  // The turn leaves: the session stays with `rows` rows, unless it ended. It
  // counts as idle from `last_use` on.
  void Leave(int32_t slot, int64_t rows, absl::Duration last_use);

  // A running turn takes a free slot beside its session's, and gives it back.
  // REQUIRES: free() > 0.
  int32_t TakeFree();
  void GiveBack(int32_t slot) { free_.insert(slot); }

  int64_t free() const { return static_cast<int64_t>(free_.size()); }
  int64_t used() const {
    return static_cast<int64_t>(entries_.size()) - free();
  }

 private:
  std::vector<Entry> entries_;
  std::unordered_map<uint64_t, int32_t> slot_of_;
  std::set<int32_t> free_;
  std::set<std::pair<absl::Duration, int32_t>> idle_;  // by last_use
};

}  // namespace txl
