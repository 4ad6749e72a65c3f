#pragma once

// Which slot a turn gets: a pure function of the few slots that may serve it.

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace txl {

// What SlotTable knows of the slots for one turn: the best of each kind, so
// that a choice costs the same however many slots there are.
struct SlotCandidates {
  struct Own {
    int32_t slot = -1;
    bool leaving = false;  // the session moves out; another will come
  };
  struct Idle {
    int32_t slot = -1;
    absl::Duration idle;  // since the last turn of the session there
  };
  std::optional<Own> own;            // where the turn's session lives
  std::optional<int32_t> free;       // an empty one
  std::optional<Idle> idle_longest;  // of the sessions without a turn
  bool running = false;              // a turn works in some slot
  // The turn that has waited longest for its reader.
  std::optional<Idle> parked;
};

struct SlotChoice {
  enum class Kind {
    kResident,  // the session's own slot
    kFree,      // an empty one
    kEvict,     // move the session that lives there out, then take it
    kYield,     // the parked turn there gives it up, then as kEvict
    kWait,      // nothing now, but a running turn will leave one
    kRefuse,    // only sessions that are idle for less than min_idle
  };
  Kind kind = Kind::kWait;
  int32_t slot = -1;
};

// Own slot before a free one before the one idle longest before the one parked
// longest. A session that is idle, or whose turn is parked, for less than
// `min_idle` is never moved out, nor one whose turn has something to do; one
// that moves out waits until it has.
SlotChoice ChooseSlot(const SlotCandidates& slots, absl::Duration min_idle);

}  // namespace txl
