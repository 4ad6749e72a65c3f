// SchedulerLoop: who stands back for whom. Rows are shared between tenants by
// weight; a turn gives its slot up for a more urgent one of its tenant; a
// tenant samples no token that its quota does not have.

#include "server/scheduler/scheduler_loop.h"

namespace txl {

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

void SchedulerLoop::Want(const Turn& turn, absl::Duration due) {
  wanting_ = Wanting{TenantName(turn), turn.priority, due};
}

void SchedulerLoop::AskForSlot() {
  const std::optional<uint64_t> asked_before = asked_;
  asked_.reset();
  // A state that moves out moves in again: not while one may not at once, nor
  // for turns that would be too many without a slot.
  const bool may_ask = wanting_.has_value() && wanting_->priority > 0 &&
                       options_.min_idle == absl::ZeroDuration() &&
                       turns_away_ < options_.max_parked_turns;
  absl::Duration latest = may_ask ? wanting_->due : absl::InfiniteDuration();
  for (auto it = running_.begin(); may_ask && it != running_.end(); ++it) {
    const Sequence& sequence = it->second.sequence;
    const absl::Duration due =
        DueOf(sequence.turn(), sequence.submitted(), options_.priority_age);
    if (due <= latest || !MayBeAsked(it->second)) continue;
    latest = due;
    asked_ = it->first;
  }
  if (!asked_before.has_value() || asked_ == asked_before) return;
  // It goes on, unless something else holds it.
  const auto freed = running_.find(*asked_before);
  if (freed == running_.end()) return;
  const Running& running = freed->second;
  if (running.parked_since.has_value() || running.paused_until.has_value()) {
    return;
  }
  SetMayYield(freed, false, clock_->Monotonic());
}

bool SchedulerLoop::MayBeAsked(const Running& running) const {
  const Turn& turn = running.sequence.turn();
  return !running.away && turn.priority < wanting_->priority &&
         running.sequence.phase() == SequencePhase::kDecoding &&
         TenantName(turn) == wanting_->tenant;
}

}  // namespace txl
