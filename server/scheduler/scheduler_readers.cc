// SchedulerLoop: turns that stand still, because their readers lag (parked
// ones), their tenants have no tokens left (paused ones) or a more urgent turn
// wants a slot (asked ones). Such a turn keeps its slot while nobody else wants
// it. When another turn waits, it gives the slot up: its session stays there as
// one without a turn and is moved out like any other. The turn comes back when
// nothing holds it any more, in the order of waiting.

#include <utility>

#include "server/scheduler/scheduler_loop.h"
#include "server/scheduler/turn_end.h"
#include "server/scheduler/turn_errors.h"

namespace txl {
namespace {

// How often turns are looked at that wait for their readers, while others run.
constexpr absl::Duration kRestingInterval = absl::Milliseconds(1);

}  // namespace

void SchedulerLoop::PollRunning(absl::Duration now) {
  const bool all = MayLookAtAll(now);
  for (auto it = running_.begin(); it != running_.end();) {
    const auto current = it++;
    Running& running = current->second;
    if (!all && running.rests()) continue;
    WatchReader(current, now);
    const Sequence& sequence = running.sequence;
    std::optional<absl::Status> end = EndOf(
        sequence.turn(), sequence.submitted(), options_.longest_turn, now);
    if (!end.has_value() && running.reader.TooSlow(options_)) {
      end = ClientTooSlow();
    }
    if (end.has_value()) {
      Fail(current, *end);
    } else if (shared_->end_all && sequence.generated() == 0) {
      Fail(current, ServerDraining());
    } else if (shared_->end_all && sequence.tokens_in_flight() == 0) {
      Finish(current, FinishReason::kServerDrain);
    }
  }
}

// Very many may rest: looking at each of them in every step of a small model
// would take longer than the step. A loop without steps was woken for one of
// them, and on a clock that stands still no time is lost.
bool SchedulerLoop::MayLookAtAll(absl::Duration now) {
  const absl::Duration since = now - looked_at_all_;
  if (stepping_ && !shared_->end_all && since > absl::ZeroDuration() &&
      since < kRestingInterval) {
    return false;
  }
  looked_at_all_ = now;
  return true;
}

void SchedulerLoop::WatchReader(RunningMap::iterator it, absl::Duration now) {
  Running& running = it->second;
  const Sequence& sequence = running.sequence;
  const bool streams = sequence.phase() == SequencePhase::kDecoding;
  int unsent = 0;
  if (streams || running.away) {
    unsent = sequence.turn().sink->Unsent();
    running.reader.Look(options_, sequence.generated(), unsent, now);
  }
  running.paused_until = sequence.phase() == SequencePhase::kCollecting
                             ? std::nullopt
                             : PausedUntil(sequence.turn(), now);
  if (running.away) {
    if (running.reader.lags() || running.returns_since.has_value()) return;
    if (running.paused_until.has_value()) return;
    running.returns_since =
        DueOf(sequence.turn(), running.displaced ? sequence.submitted() : now,
              options_.priority_age);
    returning_.emplace(*running.returns_since, it->first);
    return;
  }
  const bool full = unsent >= options_.park_events;
  SetParked(running, full, now);
  const bool stands_back =
      asked_ == it->first || (running.paused_until.has_value() &&
                              turns_away_ < options_.max_parked_turns);
  SetMayYield(
      it, streams && (full || stands_back) && sequence.tokens_in_flight() == 0,
      now);
}

void SchedulerLoop::SetParked(Running& running, bool parked,
                              absl::Duration now) {
  if (parked == running.parked_since.has_value()) return;
  if (parked) {
    running.parked_since = now;
    metrics_->Update([](Snapshot& s) { ++s.turns_parked; });
    return;
  }
  const double seconds = absl::ToDoubleSeconds(now - *running.parked_since);
  running.parked_since.reset();
  metrics_->Update([seconds](Snapshot& s) {
    --s.turns_parked;
    s.distributions.stall_seconds.Observe(seconds);
  });
}

void SchedulerLoop::SetMayYield(RunningMap::iterator it, bool may_yield,
                                absl::Duration now) {
  const ReaderWatch& reader = it->second.reader;
  std::optional<absl::Duration>& since = it->second.may_yield_since;
  if (may_yield == since.has_value()) return;
  if (may_yield) {
    since = reader.lags() ? reader.since() : now;
    may_yield_.emplace(*since, it->first);
  } else {
    may_yield_.erase({*since, it->first});
    since.reset();
  }
}

void SchedulerLoop::Yield() {
  const auto it = running_.find(may_yield_.begin()->second);
  Running& running = it->second;
  const absl::Duration since = *running.may_yield_since;
  SetMayYield(it, false, since);
  BookRebuild(running);
  slots_.Leave(running.slot, running.sequence.lease(), /*intact=*/true, since);
  running.slot = TurnSlot();
  running.away = true;
  running.displaced = !running.parked_since.has_value();
  ++turns_away_;
  metrics_->Update([displaced = running.displaced](Snapshot& s) {
    if (displaced) {
      ++s.turns_displaced;
      return;
    }
    ++s.turns_parked_out;
    ++s.parked_moves;
  });
  if (turns_away_ <= options_.max_parked_turns) return;
  Fail(it, ClientTooSlow());
  slots_.DropEnded();
}

void SchedulerLoop::Return(RunningMap::iterator it, SlotChoice choice) {
  Running& running = it->second;
  // `returns_since` stays until the turn has entered: it returns only once.
  returning_.erase({*running.returns_since, it->first});
  const SessionLease& lease = running.sequence.lease();
  choice = AfterYield(choice, lease);
  Go({std::nullopt, it->first,
      slots_.Claim(choice, lease, runner_->info().depth)});
}

void SchedulerLoop::ComeBack(RunningMap::iterator it, TurnSlot slot) {
  Running& running = it->second;
  running.slot = std::move(slot);
  EndAway(it);
  SetParked(running, false, clock_->Monotonic());
  running.sequence.Return(running.slot.rebuild_ids);
  runner_->Configure(running.slot.index, running.sequence.Sampling());
}

void SchedulerLoop::EndAway(RunningMap::iterator it) {
  Running& running = it->second;
  if (!running.away) return;
  running.away = false;
  if (running.returns_since.has_value()) {
    returning_.erase({*running.returns_since, it->first});
    running.returns_since.reset();
  }
  --turns_away_;
  if (running.displaced) return;
  metrics_->Update([](Snapshot& s) { --s.turns_parked_out; });
}

}  // namespace txl
