#pragma once

// Which slot a turn gets: a pure function of a snapshot of the slots.

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace txl {

struct SlotView {
  std::optional<uint64_t> key;  // session that lives here; none: free
  bool running = false;         // a turn works on it, or it moves out
  bool leaving = false;         // the session moves out; another will come
  absl::Duration idle;          // since its last turn, when not running
};

struct SlotChoice {
  enum class Kind {
    kResident,  // the session's own slot
    kFree,      // an empty one
    kEvict,     // move the session that lives there out, then take it
    kWait,      // nothing now, but a running turn will leave one
    kRefuse,    // only sessions that are idle for less than min_idle
  };
  Kind kind = Kind::kWait;
  int32_t slot = -1;
};

// Own slot before a free one before the one idle longest. A session that is
// idle for less than `min_idle` or has a running turn is never moved out; one
// that moves out waits until it has.
SlotChoice ChooseSlot(absl::Span<const SlotView> slots, uint64_t key,
                      absl::Duration min_idle);

}  // namespace txl
