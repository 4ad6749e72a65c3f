// SchedulerLoop: turns that stand still (resting_turns.h), and tokens that are
// guessed ahead of their streams (guesser.h).

#include <iterator>
#include <utility>

#include "server/scheduler/guesser.h"
#include "server/scheduler/scheduler_loop.h"
#include "server/scheduler/turn.h"

namespace txl {

void SchedulerLoop::PollRunning(absl::Duration now) {
  const bool all = resting_.MayLookAtAll(stepping_ && !shared_->end_all, now);
  for (auto it = running_.begin(); it != running_.end();) {
    const auto current = it++;
    Running& running = current->second;
    if (!all && running.rest.rests()) continue;
    LookAt(current, now);
    const Sequence& sequence = running.sequence;
    std::optional<absl::Status> end = EndOf(
        sequence.turn(), sequence.submitted(), options_.longest_turn, now);
    if (!end.has_value() && running.rest.TooSlow(options_)) {
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

void SchedulerLoop::LookAt(RunningMap::iterator it, absl::Duration now) {
  Running& running = it->second;
  const Sequence& sequence = running.sequence;
  const Turn& turn = sequence.turn();
  RestLook look;
  look.streams = sequence.phase() == SequencePhase::kDecoding;
  look.tokens_in_flight = sequence.tokens_in_flight();
  look.given = sequence.generated();
  if (look.streams || running.rest.away()) look.unsent = turn.sink->Unsent();
  if (sequence.phase() != SequencePhase::kCollecting) {
    look.paused_until = PausedUntil(turn, now);
  }
  look.submitted = sequence.submitted();
  look.priority = turn.priority;
  resting_.Look(it->first, running.rest, look, now);
}

void SchedulerLoop::Yield() {
  const RestingTurns::Place first = *resting_.FirstToYield();
  const auto it = running_.find(first.second);
  Running& running = it->second;
  resting_.Yield(it->first, running.rest);
  BookRebuild(running);
  slots_.Leave(running.slot, running.sequence.lease(), /*intact=*/true,
               first.first);
  running.slot = TurnSlot();
  if (!resting_.too_many_away()) return;
  Fail(it, ClientTooSlow());
  slots_.DropEnded();
}

void SchedulerLoop::Return(RunningMap::iterator it, SlotChoice choice) {
  resting_.Return(it->first, it->second.rest);
  const SessionLease& lease = it->second.sequence.lease();
  choice = AfterYield(choice, lease);
  Go({std::nullopt, it->first,
      slots_.Claim(choice, lease, runner_->info().depth)});
}

void SchedulerLoop::ComeBack(RunningMap::iterator it, TurnSlot slot) {
  Running& running = it->second;
  running.slot = std::move(slot);
  const bool resident = running.slot.claimed_as == SlotChoice::Kind::kResident;
  if (!resident) prefixes_.Entered(running.sequence.turn(), running.slot);
  resting_.Enter(it->first, running.rest, clock_->Monotonic());
  running.sequence.Return(running.slot.rebuild_ids);
  runner_->Configure(running.slot.index, running.sequence.Sampling());
}

std::vector<absl::Span<const int32_t>> SchedulerLoop::ChooseGuesses(
    const std::vector<RunningMap::iterator>& turns,
    absl::Span<const int64_t> rows, absl::Span<const BatchCandidate> candidates,
    int64_t room) {
  std::vector<absl::Span<const int32_t>> guesses;
  if (!guesses_.on()) return guesses;
  std::vector<uint64_t> streams;
  std::vector<size_t> turn_of;
  for (size_t i = 0; i < turns.size(); ++i) {
    if (rows[i] == 0 || !candidates[i].decode) continue;
    streams.push_back(turns[i]->first);
    turn_of.push_back(i);
  }
  if (!guesses_.Weigh(streams)) return guesses;
  guesses.resize(turns.size());
  for (size_t i = 0; i < streams.size(); ++i) {
    const Running& running = turns[turn_of[i]]->second;
    const std::optional<int64_t> most =
        MostGuessesOf(running, room / std::ssize(streams));
    if (!most.has_value()) continue;
    guesses[turn_of[i]] = guesses_.Guess(
        streams[i], running.sequence.turn().lease.token_ids(), *most);
  }
  return guesses;
}

std::optional<int64_t> SchedulerLoop::MostGuessesOf(const Running& running,
                                                    int64_t room) {
  const Sequence& sequence = running.sequence;
  const Turn& turn = sequence.turn();
  const RunnerInfo& info = runner_->info();
  // Nothing is in flight, so that its own row feeds the session's last id.
  if (!sequence.committed() || sequence.tokens_in_flight() != 0) {
    return std::nullopt;
  }
  // What is guessed is taken from a quota like what is sampled.
  if (turn.account != nullptr &&
      turn.account->TokensOut(clock_->Monotonic()) <= info.max_rows) {
    return std::nullopt;
  }
  GuessRoom most;
  most.wanted = guesses_.most();
  most.rows = room;
  most.spare_rows = info.spare_rows;
  most.tokens_left = sequence.tokens_plannable() - 1;
  most.events_left = options_.park_events - turn.sink->Unsent() - 1;
  return MostGuesses(most);
}

}  // namespace txl
