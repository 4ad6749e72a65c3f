#include "server/scheduler/resting_turns.h"

#include <algorithm>
#include <utility>

#include "server/scheduler/admission_queue.h"

namespace txl {

void ReaderWatch::Look(const SchedulerOptions& options, int64_t given,
                       int unsent, absl::Duration now) {
  if (!lags()) {
    if (unsent < options.park_events) return;
    *this = ReaderWatch();
    since_ = last_read_ = window_begin_ = looked_ = now;
    read_ = window_read_ = given - unsent;
    return;
  }
  if (unsent <= CaughtUpEvents(options.park_events)) {
    since_.reset();
    return;
  }
  looked_ = now;
  if (given - unsent != read_) {
    read_ = given - unsent;
    last_read_ = now;
  }
  if (now - window_begin_ < options.rate_window) return;
  below_rate_ = static_cast<double>(read_ - window_read_) <
                options.least_rate * absl::ToDoubleSeconds(options.rate_window);
  window_begin_ = now;
  window_read_ = read_;
}

bool ReaderWatch::TooSlow(const SchedulerOptions& options) const {
  return lags() &&
         (below_rate_ || looked_ - last_read_ >= options.slow_reader_limit);
}

absl::Duration ReaderWatch::NextLimit(const SchedulerOptions& options) const {
  if (!lags()) return absl::InfiniteDuration();
  return std::min(last_read_ + options.slow_reader_limit,
                  window_begin_ + options.rate_window);
}

namespace {

// How often turns that rest are looked at while others run.
constexpr absl::Duration kRestingInterval = absl::Milliseconds(1);

}  // namespace

absl::Duration TurnRest::NextLimit(const SchedulerOptions& options) const {
  return std::min(reader_.NextLimit(options),
                  paused_until_.value_or(absl::InfiniteDuration()));
}

// A loop without steps was woken for one of them, and on a clock that stands
// still no time is lost.
bool RestingTurns::MayLookAtAll(bool stepping, absl::Duration now) {
  const absl::Duration since = now - looked_at_all_;
  if (stepping && since > absl::ZeroDuration() && since < kRestingInterval) {
    return false;
  }
  looked_at_all_ = now;
  return true;
}

void RestingTurns::Look(uint64_t id, TurnRest& rest, const RestLook& look,
                        absl::Duration now) {
  if (look.streams || rest.away_) {
    rest.reader_.Look(options_, look.given, look.unsent, now);
  }
  rest.paused_until_ = look.paused_until;
  if (rest.away_) {
    if (rest.reader_.lags() || rest.returns_since_.has_value()) return;
    if (rest.paused()) return;
    rest.returns_since_ =
        DueOf(look.priority, rest.displaced_ ? look.submitted : now,
              options_.priority_age);
    returning_.emplace(*rest.returns_since_, id);
    return;
  }
  const bool full = look.unsent >= options_.park_events;
  SetParked(rest, full, now);
  const bool stands_back = asked(id) || (rest.paused() && room_away());
  SetMayYield(
      id, rest,
      look.streams && (full || stands_back) && look.tokens_in_flight == 0, now);
}

std::optional<uint64_t> RestingTurns::Ask(std::optional<uint64_t> id) {
  const std::optional<uint64_t> before = std::exchange(asked_, id);
  return before == id ? std::nullopt : before;
}

void RestingTurns::GoOn(uint64_t id, TurnRest& rest) {
  if (rest.parked() || rest.paused()) return;
  SetMayYield(id, rest, false, absl::ZeroDuration());
}

void RestingTurns::Yield(uint64_t id, TurnRest& rest) {
  SetMayYield(id, rest, false, absl::ZeroDuration());
  rest.away_ = true;
  rest.displaced_ = !rest.parked();
  ++away_;
  metrics_->Update([displaced = rest.displaced_](Snapshot& s) {
    if (displaced) {
      ++s.turns_displaced;
      return;
    }
    ++s.turns_parked_out;
    ++s.parked_moves;
  });
}

void RestingTurns::Return(uint64_t id, const TurnRest& rest) {
  // `returns_since_` stays until the turn has entered.
  returning_.erase({*rest.returns_since_, id});
}

void RestingTurns::Enter(uint64_t id, TurnRest& rest, absl::Duration now) {
  EndAway(id, rest);
  SetParked(rest, false, now);
}

void RestingTurns::End(uint64_t id, TurnRest& rest, absl::Duration now) {
  SetMayYield(id, rest, false, absl::ZeroDuration());
  Enter(id, rest, now);
}

void RestingTurns::SetParked(TurnRest& rest, bool parked, absl::Duration now) {
  if (parked == rest.parked()) return;
  if (parked) {
    rest.parked_since_ = now;
    metrics_->Update([](Snapshot& s) { ++s.turns_parked; });
    return;
  }
  const double seconds = absl::ToDoubleSeconds(now - *rest.parked_since_);
  rest.parked_since_.reset();
  metrics_->Update([seconds](Snapshot& s) {
    --s.turns_parked;
    s.distributions.stall_seconds.Observe(seconds);
  });
}

void RestingTurns::SetMayYield(uint64_t id, TurnRest& rest, bool may_yield,
                               absl::Duration now) {
  std::optional<absl::Duration>& since = rest.may_yield_since_;
  if (may_yield == since.has_value()) return;
  if (may_yield) {
    since = rest.reader_.lags() ? rest.reader_.since() : now;
    may_yield_.emplace(*since, id);
  } else {
    may_yield_.erase({*since, id});
    since.reset();
  }
}

void RestingTurns::EndAway(uint64_t id, TurnRest& rest) {
  if (!rest.away_) return;
  rest.away_ = false;
  if (rest.returns_since_.has_value()) {
    returning_.erase({*rest.returns_since_, id});
    rest.returns_since_.reset();
  }
  --away_;
  if (rest.displaced_) return;
  metrics_->Update([](Snapshot& s) { --s.turns_parked_out; });
}

}  // namespace txl
