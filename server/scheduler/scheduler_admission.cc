// SchedulerLoop: from the queue to a slot.

#include <utility>

#include "server/scheduler/scheduler_loop.h"
#include "server/scheduler/turn_errors.h"

namespace txl {

void SchedulerLoop::Admit() {
  slots_.DropEnded();
  for (auto it = entering_.begin(); it != entering_.end();) {
    const auto current = it++;
    if (!current->slot.ready()) continue;
    Entering entering = std::move(*current);
    entering_.erase(current);
    Enter(std::move(entering));
  }
  bool blocked = false;
  wanting_.reset();
  while (AdmitNext(blocked)) {
  }
  AskForSlot();
}

bool SchedulerLoop::AdmitNext(bool& blocked) {
  if (shared_->queue.empty() && (blocked || returning_.empty())) return false;
  // Who comes back waits for itself, once one before it has to.
  const absl::Duration first_return = blocked || returning_.empty()
                                          ? absl::InfiniteDuration()
                                          : returning_.begin()->first;
  const absl::Duration now = clock_->Monotonic();
  SlotChoice choice;
  const auto next = [&](const QueuedTurn& queued) {
    if (!NeedsSlot(queued.turn)) return true;
    const absl::Duration due =
        DueOf(queued.turn, queued.submitted, options_.priority_age);
    if (!blocked && due > first_return) return false;
    if (PausedUntil(queued.turn, now).has_value()) return false;
    choice = Choose(queued.turn.lease);
    const bool resident = choice.kind == SlotChoice::Kind::kResident;
    if (!blocked && choice.kind == SlotChoice::Kind::kWait) {
      blocked = true;
      Want(queued.turn, due);
    }
    return !blocked || resident;
  };
  std::optional<QueuedTurn> queued = shared_->queue.TakeFirst(now, next);
  if (queued.has_value()) {
    shared_->queue.Charge(queued->turn);
    Start(*std::move(queued), choice);
    return true;
  }
  if (blocked || returning_.empty()) return false;
  const auto it = running_.find(returning_.begin()->second);
  choice = Choose(it->second.sequence.lease());
  blocked = choice.kind == SlotChoice::Kind::kWait ||
            choice.kind == SlotChoice::Kind::kRefuse;
  if (blocked) {
    Want(it->second.sequence.turn(), first_return);
  } else {
    Return(it, choice);
  }
  return true;
}

bool SchedulerLoop::NeedsSlot(const Turn& turn) const {
  if (turn.kind != TurnKind::kSave) return InputRows(turn) > 0;
  // A state that is in no slot is saved already, or lost.
  return slots_.CandidatesFor(turn.lease).own.has_value();
}

SlotChoice SchedulerLoop::Choose(const SessionLease& lease) const {
  SlotCandidates slots = slots_.CandidatesFor(lease);
  if (!may_yield_.empty()) {
    const auto& [since, id] = *may_yield_.begin();
    const Running& still = running_.at(id);
    // Only a slow reader's turn is one too many where too many are away.
    if (still.parked_since.has_value() ||
        turns_away_ < options_.max_parked_turns) {
      slots.parked = {still.slot.index, clock_->Monotonic() - since};
    }
  }
  return ChooseSlot(slots, options_.min_idle);
}

SlotChoice SchedulerLoop::AfterYield(SlotChoice choice,
                                     const SessionLease& lease) {
  if (choice.kind != SlotChoice::Kind::kYield) return choice;
  Yield();
  return Choose(lease);
}

void SchedulerLoop::Start(QueuedTurn queued, const SlotChoice& choice) {
  if (!NeedsSlot(queued.turn)) {
    Run(std::move(queued), TurnSlot());
    return;
  }
  if (choice.kind == SlotChoice::Kind::kRefuse) {
    Refuse(std::move(queued), NoSessionMemory(options_.retry_after));
    return;
  }
  TurnSlot slot =
      slots_.Claim(AfterYield(choice, queued.turn.lease), queued.turn.lease,
                   RowsBeforeCommit(queued.turn, runner_->info().depth));
  Go({std::move(queued), 0, std::move(slot)});
}

void SchedulerLoop::Go(Entering entering) {
  if (entering.slot.ready()) {
    Enter(std::move(entering));
  } else {
    entering_.push_back(std::move(entering));
  }
}

void SchedulerLoop::Enter(Entering entering) {
  TurnSlot& slot = entering.slot;
  if (!entering.queued.has_value()) {
    const auto it = running_.find(entering.returning);
    const absl::Status status = slots_.Enter(slot, it->second.sequence.lease());
    if (status.ok()) {
      ComeBack(it, std::move(slot));
    } else {
      Fail(it, status);
    }
    return;
  }
  const absl::Status status = slots_.Enter(slot, entering.queued->turn.lease);
  if (status.ok()) {
    Run(*std::move(entering.queued), std::move(slot));
  } else {
    Refuse(*std::move(entering.queued), status);
  }
}

void SchedulerLoop::TurnAway(std::list<Entering>::iterator it) {
  slots_.DropClaim(it->slot);
  entering_.erase(it);
}

void SchedulerLoop::WaitToEnter() {
  Entering entering = std::move(entering_.front());
  entering_.pop_front();
  Enter(std::move(entering));
  shared_->heartbeat.Beat(clock_->Monotonic());
}

void SchedulerLoop::Run(QueuedTurn queued, TurnSlot slot) {
  const int64_t rebuild_ids = slot.rebuild_ids;
  Running running{Sequence(std::move(queued), rebuild_ids, clock_->Monotonic()),
                  std::move(slot)};
  const auto it = running_.emplace(next_id_++, std::move(running)).first;
  const Sequence& sequence = it->second.sequence;
  if (sequence.contradicted()) return Fail(it, ResumeMismatch());
  const Turn& turn = sequence.turn();
  if (turn.kind == TurnKind::kGenerate) {
    runner_->Configure(it->second.slot.index, sequence.Sampling());
  }
  if (turn.kind == TurnKind::kAlternatives) {
    it->second.sequence.OpenLanes(runner_->info(), it->second.slot.index);
  }
  turn.sink->Started(sequence.Started());
  for (const TokenEvent& token : sequence.Replayed()) turn.sink->Token(token);
  if (sequence.all_collected()) FinishInput(it);
}

void SchedulerLoop::Refuse(QueuedTurn queued, const absl::Status& status) {
  const std::shared_ptr<TokenSink> sink = queued.turn.sink;
  queued.turn.lease.Release();
  TurnEnd end = EndOfTurn(queued.turn, queued.submitted, clock_->Monotonic());
  BookFailure(std::move(end), status);
  if (TenantAccount* const account = queued.turn.account) {
    account->EndTurn(TokensIn(queued.turn));  // none was fed
  }
  sink->Failed(status);
  --shared_->live_turns;
}

}  // namespace txl
