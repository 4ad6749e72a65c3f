#include "server/api/turn_times.h"

namespace txl {
namespace {

// From `begin` to `end`, or to `last` where the turn ended before.
absl::Duration Between(const std::optional<absl::Duration>& begin,
                       const std::optional<absl::Duration>& end,
                       const std::optional<absl::Duration>& last) {
  const std::optional<absl::Duration>& until = end.has_value() ? end : last;
  if (!begin.has_value() || !until.has_value()) return absl::ZeroDuration();
  return *until - *begin;
}

}  // namespace

absl::Duration TurnTimes::Queue() const {
  return Between(queued, started, ended);
}

absl::Duration TurnTimes::Prefill() const {
  return Between(started, fed, ended);
}

absl::Duration TurnTimes::Decode() const { return Between(fed, ended, ended); }

void EndWell(const TurnTiming& timing, TurnTimes* times) {
  if (!times->queued.has_value() || !times->started.has_value()) {
    *times = TurnTimes();
    return;
  }
  times->started = *times->queued + absl::Seconds(timing.queued_seconds);
  times->fed = *times->started + absl::Seconds(timing.prefill_seconds);
  times->ended = *times->fed + absl::Seconds(timing.decode_seconds);
}

}  // namespace txl
