#pragma once

// How long a call's turn waited and ran. Pure.

#include <optional>

#include "absl/time/time.h"
#include "server/session/turn_events.h"

namespace txl {

// Borders of a turn, on Clock::Monotonic, as far as it has come.
struct TurnTimes {
  std::optional<absl::Duration> queued;   // asked for; absent: there is none
  std::optional<absl::Duration> started;  // has left the queue
  std::optional<absl::Duration> fed;      // its input; its first token is there
  std::optional<absl::Duration> ended;

  // Zero where it has not come so far.
  absl::Duration Queue() const;
  absl::Duration Prefill() const;
  absl::Duration Decode() const;
  absl::Duration Run() const { return Prefill() + Decode(); }
};

// The turn has ended well, with these times. One that was never started is an
// earlier one that is told again: nothing waited and nothing ran.
void EndWell(const TurnTiming& timing, TurnTimes* times);

}  // namespace txl
