#pragma once

// Turns that stand still, because their readers lag (parked ones), their
// tenants have no tokens left (paused ones) or a more urgent turn wants a slot
// (asked ones). Such a turn keeps its slot while no other turn wants it. When
// one does, it gives the slot up and is away. It comes back when nothing holds
// it any more, in the order of waiting.

#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "absl/time/time.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/scheduler_options.h"

namespace txl {

// Unsent events at which a reader that lagged has caught up.
inline int CaughtUpEvents(int park_events) { return park_events / 2; }

// How a stream's reader keeps up. Decides nothing but whether it lags, and
// whether it reads too little to be waited for.
//
// A reader lags from the moment when `park_events` events are unsent until
// half of them are: a single read now and then is not keeping up. While it
// lags it has to read something within `slow_reader_limit`, and `least_rate`
// events per second over each `rate_window`.
//
// Not thread-safe. Times are Clock::Monotonic and do not go back.
class ReaderWatch {
 public:
  // At `now`, `unsent` of the `given` events that the stream got are not read;
  // `given` may count from any event on.
  void Look(const SchedulerOptions& options, int64_t given, int unsent,
            absl::Duration now);

  bool lags() const { return since_.has_value(); }
  // REQUIRES: lags.
  absl::Duration since() const { return *since_; }
  // What the last look found.
  bool TooSlow(const SchedulerOptions& options) const;
  // When the next look may find it too slow; infinite while it does not lag.
  absl::Duration NextLimit(const SchedulerOptions& options) const;

 private:
  std::optional<absl::Duration> since_;
  absl::Duration looked_;
  int64_t read_ = 0;
  absl::Duration last_read_;
  absl::Duration window_begin_;
  int64_t window_read_ = 0;  // read_ at its begin
  bool below_rate_ = false;  // over the last whole window
};

// How one turn stands; RestingTurns keeps it. Times are Clock::Monotonic.
class TurnRest {
 public:
  bool parked() const { return parked_since_.has_value(); }
  bool paused() const { return paused_until_.has_value(); }
  bool away() const { return away_; }
  // Stands still and has nothing in flight.
  bool rests() const { return away_ || may_yield_since_.has_value(); }
  // What the last look found.
  bool TooSlow(const SchedulerOptions& options) const {
    return reader_.TooSlow(options);
  }
  // When the next look may find something else by itself; infinite: never.
  absl::Duration NextLimit(const SchedulerOptions& options) const;

 private:
  friend class RestingTurns;

  ReaderWatch reader_;
  std::optional<absl::Duration> parked_since_;
  std::optional<absl::Duration> paused_until_;
  // The times under which the turn stands in line.
  std::optional<absl::Duration> may_yield_since_, returns_since_;
  bool away_ = false;
  bool displaced_ = false;  // away, and not because of its reader
};

// What a look at a turn finds.
struct RestLook {
  bool streams = false;  // it samples, or would
  int64_t tokens_in_flight = 0;
  int64_t given = 0;  // events of its stream, and how many of them are unsent
  int unsent = 0;     // REQUIRES: 0 unless it streams or is away
  std::optional<absl::Duration> paused_until;
  absl::Duration submitted;
  int32_t priority = 0;
};

// Not thread-safe. A turn is named by its id and its TurnRest, which belong
// together. Counts in the metrics who is parked and who is away.
class RestingTurns {
 public:
  // A time, and the id of a turn.
  using Place = std::pair<absl::Duration, uint64_t>;

  RestingTurns(const SchedulerOptions& options, Metrics* metrics)
      : options_(options), metrics_(metrics) {}

  // Whether it is time to look at turns that rest, too. Very many may rest:
  // looking at each of them in every step of a small model would take longer
  // than the step. `stepping`: there are steps, so that a look will come.
  bool MayLookAtAll(bool stepping, absl::Duration now);
  void Look(uint64_t id, TurnRest& rest, const RestLook& look,
            absl::Duration now);
  // The turn, if any, is asked for its slot from now on, and no other. Returns
  // the one that was and is not any more: GoOn.
  std::optional<uint64_t> Ask(std::optional<uint64_t> id);
  bool asked(uint64_t id) const { return asked_ == id; }
  // The turn goes on, unless something else holds it.
  void GoOn(uint64_t id, TurnRest& rest);

  // The turn that stands still longest with nothing in flight and a slot, and
  // since when.
  std::optional<Place> FirstToYield() const { return FirstOf(may_yield_); }
  // The turn gives its slot up.
  void Yield(uint64_t id, TurnRest& rest);
  // Whether one more turn may be away, and whether one too many is.
  bool room_away() const { return away_ < options_.max_parked_turns; }
  bool too_many_away() const { return away_ > options_.max_parked_turns; }

  // The first turn that is away and may go on, and when it is due: from when
  // its reader had caught up, or from its arrival where it was displaced.
  std::optional<Place> FirstToReturn() const { return FirstOf(returning_); }
  // The turn is on its way to a slot, and returns only once.
  void Return(uint64_t id, const TurnRest& rest);
  // The turn has its slot.
  void Enter(uint64_t id, TurnRest& rest, absl::Duration now);
  // The turn ends.
  void End(uint64_t id, TurnRest& rest, absl::Duration now);

 private:
  static std::optional<Place> FirstOf(const std::set<Place>& line) {
    if (line.empty()) return std::nullopt;
    return *line.begin();
  }
  // Every change of whether it is parked, of whether it may give its slot up.
  void SetParked(TurnRest& rest, bool parked, absl::Duration now);
  void SetMayYield(uint64_t id, TurnRest& rest, bool may_yield,
                   absl::Duration now);
  void EndAway(uint64_t id, TurnRest& rest);

  const SchedulerOptions options_;
  Metrics* const metrics_;
  std::set<Place> may_yield_;
  std::set<Place> returning_;
  int64_t away_ = 0;
  std::optional<uint64_t> asked_;
  absl::Duration looked_at_all_ = -absl::InfiniteDuration();
};

}  // namespace txl
