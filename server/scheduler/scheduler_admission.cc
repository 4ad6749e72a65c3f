// SchedulerLoop: from the queue to a slot, and to a prompt whose beginning is
// there already.

#include <utility>

#include "server/scheduler/scheduler_loop.h"
#include "server/scheduler/turn.h"

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
  std::optional<Wanting> blocked;
  while (AdmitNext(blocked)) {
  }
  AskForSlot(blocked);
}

bool SchedulerLoop::AdmitNext(std::optional<Wanting>& blocked) {
  // Who comes back waits for itself, once one before it has to.
  const std::optional<RestingTurns::Place> returning =
      blocked.has_value() ? std::nullopt : resting_.FirstToReturn();
  if (shared_->queue.empty() && !returning.has_value()) return false;
  const absl::Duration first_return =
      returning.has_value() ? returning->first : absl::InfiniteDuration();
  const absl::Duration now = clock_->Monotonic();
  SlotChoice choice;
  const auto next = [&](const QueuedTurn& queued) {
    if (!NeedsSlot(queued.turn)) return true;
    const absl::Duration due =
        DueOf(queued.turn.priority, queued.submitted, options_.priority_age);
    if (!blocked.has_value() && due > first_return) return false;
    if (PausedUntil(queued.turn, now).has_value()) return false;
    choice = Choose(queued.turn.lease);
    const bool resident = choice.kind == SlotChoice::Kind::kResident;
    if (!blocked.has_value() && choice.kind == SlotChoice::Kind::kWait) {
      blocked = Wanting{TenantName(queued.turn), queued.turn.priority, due};
    }
    return !blocked.has_value() || resident;
  };
  std::optional<QueuedTurn> queued = shared_->queue.TakeFirst(now, next);
  if (queued.has_value()) {
    shared_->queue.Charge(queued->turn);
    Start(*std::move(queued), choice);
    return true;
  }
  if (blocked.has_value() || !returning.has_value()) return false;
  const auto it = running_.find(returning->second);
  choice = Choose(it->second.sequence.lease());
  if (choice.kind == SlotChoice::Kind::kWait ||
      choice.kind == SlotChoice::Kind::kRefuse) {
    const Turn& turn = it->second.sequence.turn();
    blocked = Wanting{TenantName(turn), turn.priority, first_return};
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
  if (const auto first = resting_.FirstToYield(); first.has_value()) {
    const Running& still = running_.at(first->second);
    // Only a slow reader's turn is one too many where too many are away.
    if (still.rest.parked() || resting_.room_away()) {
      slots.parked = {still.slot.index, clock_->Monotonic() - first->first};
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
  SlotChoice place = AfterYield(choice, queued.turn.lease);
  PrefixHit taken;
  if (prefixes_.on() && place.kind == SlotChoice::Kind::kFree) {
    place.slot = prefixes_.Place(queued.turn, slots_.table(), &taken);
  }
  TurnSlot slot =
      slots_.Claim(place, queued.turn.lease,
                   RowsBeforeCommit(queued.turn, runner_->info().depth));
  slot.taken = std::move(taken);
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
  const bool is_new = entering.queued.has_value();
  const auto it = is_new ? running_.end() : running_.find(entering.returning);
  const absl::Status status = slots_.AwaitSave(slot);
  if (!status.ok()) {
    return is_new ? Refuse(*std::move(entering.queued), status)
                  : Fail(it, status);
  }
  const SessionLease& lease =
      is_new ? entering.queued->turn.lease : it->second.sequence.lease();
  const bool resident = slot.claimed_as == SlotChoice::Kind::kResident;
  if (!resident && slot.taken.rows == 0) {
    prefixes_.Overwrite(slot.index, lease.position());
  }
  slots_.Enter(slot, lease);
  if (is_new) {
    Run(*std::move(entering.queued), std::move(slot));
  } else {
    ComeBack(it, std::move(slot));
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
  Running running{Sequence(std::move(queued), rebuild_ids, clock_->Monotonic(),
                           runner_->info().beats),
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
  prefixes_.Entered(turn, it->second.slot);
  BeginOrWait(it);
  turn.sink->Started(sequence.Started());
  for (const TokenEvent& token : sequence.Replayed()) turn.sink->Token(token);
  if (sequence.all_collected()) FinishInput(it);
}

void SchedulerLoop::BeginOrWait(RunningMap::iterator it) {
  Running& running = it->second;
  if (!prefixes_.on() || running.sequence.SkippableRows() == 0) return;
  const Turn& turn = running.sequence.turn();
  RunningMap::iterator leader = it;
  int64_t rows = 0;
  for (auto other = running_.begin(); other != it; ++other) {
    const Running& older = other->second;
    if (running.slot.taken.rows > 0 || older.rest.rests()) continue;
    if (older.slot.index < 0) continue;
    if (older.sequence.phase() != SequencePhase::kPrompting) continue;
    const int64_t shared =
        prefixes_.RowsOfLeader(older.sequence, older.slot.index, turn);
    if (shared <= rows) continue;
    leader = other;
    rows = shared;
  }
  // What little more it has is fed sooner than waited for.
  if (leader == it || rows < prefixes_.RowsFor(turn) + prefixes_.least_rows()) {
    prefixes_.Begin(running.sequence, running.slot, running.prefix);
    return;
  }
  running.prefix.leader = leader->first;
  running.prefix.rows_of_leader = rows;
  prefixes_.PartsAt(rows, leader->second.sequence, leader->second.prefix);
  ++waiting_;
}

void SchedulerLoop::ServeWaiting() {
  if (waiting_ == 0) return;
  for (auto it = running_.begin(); it != running_.end();) {
    const auto current = it++;  // the turn may end
    if (current->second.prefix.leader.has_value()) ServeWaiting(current);
  }
}

void SchedulerLoop::ServeWaiting(RunningMap::iterator it) {
  Running& running = it->second;
  const auto leader = running_.find(*running.prefix.leader);
  // A leader without a slot has given it up.
  const bool there = leader != running_.end() && leader->second.slot.index >= 0;
  const bool fed =
      there && leader->second.slot.arrived() &&
      leader->second.sequence.collected_end() >= running.prefix.rows_of_leader;
  // A leader that stands still would hold up turns that need not.
  if (there && !fed && !leader->second.rest.rests() &&
      !resting_.asked(leader->first)) {
    return;
  }
  running.prefix.leader.reset();
  --waiting_;
  const bool begun =
      fed &&
      prefixes_.BeginBehind(leader->second.sequence, leader->second.slot.index,
                            running.sequence, running.slot, running.prefix);
  if (!begun) BeginOrWait(it);
  if (running.sequence.all_collected()) FinishInput(it);
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

// SchedulerLoop: who stands back for whom. Rows are shared between tenants by
// weight; a turn gives its slot up for a more urgent one of its tenant; a
// tenant samples no token that its quota does not have.

bool SchedulerLoop::Allowance::Grant(Running& running) {
  const Turn& turn = running.sequence.turn();
  if (turn.account == nullptr || turn.kind != TurnKind::kGenerate) return true;
  auto found = left.find(turn.account);
  if (found == left.end()) {
    found = left.emplace(turn.account, turn.account->TokensOut(now)).first;
  }
  if (found->second <= 0) return false;
  --found->second;
  return true;
}

void SchedulerLoop::TakeTokensOut(absl::Span<const StepRow> rows,
                                  TenantAccount* account) {
  const absl::Duration now = clock_->Monotonic();
  for (const StepRow& row : rows) {
    if (row.kind == RowKind::kDecode) account->TakeTokensOut(1, now);
  }
}

std::optional<absl::Duration> SchedulerLoop::PausedUntil(const Turn& turn,
                                                         absl::Duration now) {
  if (turn.account == nullptr || turn.kind != TurnKind::kGenerate) {
    return std::nullopt;
  }
  return turn.account->PausedUntil(now);
}

std::vector<int64_t> SchedulerLoop::Divide(
    const std::vector<RunningMap::iterator>& turns,
    absl::Span<const BatchCandidate> candidates, const BatchLimits& limits) {
  const auto account = [&turns](size_t i) {
    return turns[i]->second.sequence.turn().account;
  };
  bool several = false;
  for (size_t i = 1; i < turns.size() && !several; ++i) {
    several = account(i) != account(0);
  }
  if (!several) return PlanBatch(candidates, limits, steps_planned_);
  std::vector<TenantRows::Tenant> tenants;
  for (const auto& it : turns) {
    const Turn& turn = it->second.sequence.turn();
    tenants.push_back({TenantName(turn), TenantWeight(turn)});
  }
  return PlanBatch(candidates, limits, steps_planned_,
                   [&](bool streams, absl::Span<const size_t> members,
                       absl::Span<const int64_t> wanted, int64_t budget,
                       std::vector<int64_t>& rows) {
                     TenantRows& shared = streams ? stream_rows_ : prompt_rows_;
                     shared.Divide(tenants, members, wanted, budget, rows);
                   });
}

void SchedulerLoop::AskForSlot(const std::optional<Wanting>& wanting) {
  // A state that moves out moves in again: not while one may not at once, nor
  // for turns that would be too many without a slot.
  const bool may_ask = wanting.has_value() && wanting->priority > 0 &&
                       options_.min_idle == absl::ZeroDuration() &&
                       resting_.room_away();
  std::optional<uint64_t> last;
  absl::Duration latest = may_ask ? wanting->due : absl::InfiniteDuration();
  for (auto it = running_.begin(); may_ask && it != running_.end(); ++it) {
    const Sequence& sequence = it->second.sequence;
    const Turn& turn = sequence.turn();
    const absl::Duration due =
        DueOf(turn.priority, sequence.submitted(), options_.priority_age);
    const bool may_be_asked = !it->second.rest.away() &&
                              turn.priority < wanting->priority &&
                              sequence.phase() == SequencePhase::kDecoding;
    if (due <= latest || !may_be_asked) continue;
    if (TenantName(turn) != wanting->tenant) continue;
    latest = due;
    last = it->first;
  }
  const std::optional<uint64_t> freed = resting_.Ask(last);
  const auto it = freed.has_value() ? running_.find(*freed) : running_.end();
  if (it != running_.end()) resting_.GoOn(it->first, it->second.rest);
}

}  // namespace txl
