// SchedulerLoop: from the queue to the device. The way back is in
// scheduler_results.cc.

#include "server/scheduler/scheduler_loop.h"

#include <algorithm>
#include <utility>

#include "server/base/error.h"
#include "server/scheduler/batch_policy.h"
#include "server/scheduler/turn_errors.h"
#include "server/session/session_errors.h"

namespace txl {
namespace {

// How often the loop looks for sessions whose time-to-live has passed.
constexpr absl::Duration kExpiryInterval = absl::Seconds(1);

}  // namespace

SchedulerLoop::SchedulerLoop(const SchedulerOptions& options,
                             const SchedulerParts& parts,
                             SchedulerShared* shared)
    : options_(options),
      runner_(parts.runner),
      store_(parts.store),
      metrics_(parts.metrics),
      clock_(parts.clock),
      shared_(shared),
      ledger_(parts.metrics),
      residency_(parts.runner, parts.store, parts.metrics, parts.clock) {}

bool SchedulerLoop::Iterate() {
  if (shared_->live_turns > 0) shared_->heartbeat.Start(clock_->Monotonic());
  Poll();
  Admit();
  bool submitted = false;
  if (static_cast<int32_t>(in_flight_.size()) < runner_->info().depth) {
    Plan plan = MakePlan();
    submitted = !plan.step.rows.empty();
    if (submitted) Submit(std::move(plan));
  }
  if (in_flight_.empty()) {
    if (!entering_.empty()) {
      WaitForEntrance();
      return true;
    }
    shared_->heartbeat.Rest();
    return false;
  }
  if (!submitted ||
      static_cast<int32_t>(in_flight_.size()) == runner_->info().depth) {
    Collect();
  }
  return true;
}

absl::Duration SchedulerLoop::NextLimit() const {
  absl::Duration limit =
      std::min(next_expiry_, shared_->queue.EarliestDeadline());
  for (const auto& [id, running] : running_) {
    limit = std::min(limit, running.sequence.turn().deadline.value_or(limit));
    if (running.parked_since.has_value()) {
      limit =
          std::min(limit, *running.parked_since + options_.slow_reader_limit);
    }
  }
  return std::max(limit - clock_->Monotonic(), absl::ZeroDuration());
}

void SchedulerLoop::EndWith(const absl::Status& status) {
  while (auto queued = shared_->queue.TakeFirst(
             clock_->Monotonic(), [](const QueuedTurn&) { return true; })) {
    Refuse(*std::move(queued), status);
  }
  while (!entering_.empty()) TurnAway(entering_.begin(), status);
  while (!running_.empty()) Fail(running_.begin(), status);
  while (!in_flight_.empty()) Collect();
}

void SchedulerLoop::Poll() {
  const absl::Duration now = clock_->Monotonic();
  if (now >= next_expiry_) {
    store_->ExpireNow();
    next_expiry_ = now + kExpiryInterval;
  }
  std::optional<absl::Status> end;
  const auto ends = [&](const QueuedTurn& queued) {
    end = shared_->end_all ? ServerDraining() : EndOf(queued.turn);
    return end.has_value();
  };
  while (auto queued = shared_->queue.TakeFirst(now, ends)) {
    Refuse(*std::move(queued), *end);
  }
  for (auto it = entering_.begin(); it != entering_.end();) {
    const auto current = it++;
    if (ends(current->queued)) TurnAway(current, *end);
  }
  PollRunning(now);
}

std::optional<absl::Status> SchedulerLoop::EndOf(const Turn& turn) const {
  if (turn.lease.delete_requested()) return SessionDeletedError();
  if (turn.lease.superseded()) return SupersededError();
  if (turn.cancel != nullptr) {
    switch (turn.cancel->why()) {
      case CancelToken::Why::kNone:
        break;
      case CancelToken::Why::kCancelled:
        return TurnCancelled();
      case CancelToken::Why::kDeadline:
        return TurnDeadlineExceeded();
    }
  }
  if (turn.deadline.has_value() && clock_->Monotonic() >= *turn.deadline) {
    return TurnDeadlineExceeded();
  }
  return std::nullopt;
}

void SchedulerLoop::PollRunning(absl::Duration now) {
  for (auto it = running_.begin(); it != running_.end();) {
    const auto current = it++;
    Running& running = current->second;
    Park(running, now);
    std::optional<absl::Status> end = EndOf(running.sequence.turn());
    if (!end.has_value() && running.parked_since.has_value() &&
        now - *running.parked_since >= options_.slow_reader_limit) {
      end = ClientTooSlow();
    }
    if (end.has_value()) {
      Fail(current, *end);
    } else if (shared_->end_all && running.sequence.generated() == 0) {
      Fail(current, ServerDraining());
    } else if (shared_->end_all && running.sequence.tokens_in_flight() == 0) {
      Finish(current, FinishReason::kServerDrain);
    }
  }
}

void SchedulerLoop::Park(Running& running, absl::Duration now) {
  const bool full =
      running.sequence.phase() == SequencePhase::kDecoding &&
      running.sequence.turn().sink->Unsent() >= options_.park_events;
  SetParked(running, full, now);
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

void SchedulerLoop::Admit() {
  residency_.DropEnded();
  for (auto it = entering_.begin(); it != entering_.end();) {
    const auto current = it++;
    if (!current->entrance.ready()) continue;
    Entering entering = std::move(*current);
    entering_.erase(current);
    Enter(std::move(entering));
  }
  bool blocked = false;
  bool more = true;
  while (more && !shared_->queue.empty()) {
    SlotChoice choice;
    // A turn that has to wait lets only those pass that need no new slot.
    const auto next = [&](const QueuedTurn& queued) {
      if (InputRows(queued.turn) == 0) return true;
      choice = residency_.Choose(queued.turn.lease, options_.min_idle);
      const bool waits = choice.kind == SlotChoice::Kind::kWait;
      const bool resident = choice.kind == SlotChoice::Kind::kResident;
      if (blocked || waits) {
        blocked = true;
        return resident;
      }
      return true;
    };
    std::optional<QueuedTurn> queued =
        shared_->queue.TakeFirst(clock_->Monotonic(), next);
    more = queued.has_value();
    if (more) Start(*std::move(queued), choice);
  }
}

void SchedulerLoop::Start(QueuedTurn queued, const SlotChoice& choice) {
  if (InputRows(queued.turn) == 0) {
    Run(std::move(queued), Placement());
    return;
  }
  if (choice.kind == SlotChoice::Kind::kRefuse) {
    Refuse(std::move(queued), NoSessionMemory(options_.retry_after));
    return;
  }
  Entrance entrance =
      residency_.Approach(choice, queued.turn.lease,
                          RowsBeforeCommit(queued.turn, runner_->info().depth));
  Entering entering{std::move(queued), std::move(entrance)};
  if (entering.entrance.ready()) {
    Enter(std::move(entering));
  } else {
    entering_.push_back(std::move(entering));
  }
}

void SchedulerLoop::Enter(Entering entering) {
  absl::StatusOr<Placement> place = residency_.Enter(
      std::move(entering.entrance), entering.queued.turn.lease);
  if (place.ok()) {
    Run(std::move(entering.queued), *std::move(place));
  } else {
    Refuse(std::move(entering.queued), place.status());
  }
}

void SchedulerLoop::TurnAway(std::list<Entering>::iterator it,
                             const absl::Status& status) {
  residency_.TurnAway(it->entrance);
  QueuedTurn queued = std::move(it->queued);
  entering_.erase(it);
  Refuse(std::move(queued), status);
}

void SchedulerLoop::WaitForEntrance() {
  Entering entering = std::move(entering_.front());
  entering_.pop_front();
  Enter(std::move(entering));
  shared_->heartbeat.Beat(clock_->Monotonic());
}

void SchedulerLoop::Run(QueuedTurn queued, Placement place) {
  const int64_t rebuild_ids = place.rebuild ? runner_->info().rebuild_ids : 0;
  Running running{Sequence(std::move(queued), rebuild_ids, clock_->Monotonic()),
                  std::move(place), std::nullopt};
  const auto it = running_.emplace(next_id_++, std::move(running)).first;
  const Sequence& sequence = it->second.sequence;
  const Turn& turn = sequence.turn();
  if (turn.kind == TurnKind::kGenerate) {
    runner_->Configure(it->second.place.slot, sequence.Sampling());
  }
  turn.sink->Started(sequence.Started());
  if (turn.resumed != nullptr) {
    for (const TokenEvent& token : turn.resumed->tokens) {
      turn.sink->Token(token);
    }
  }
  if (sequence.all_collected()) FinishInput(it);
}

void SchedulerLoop::Refuse(QueuedTurn queued, const absl::Status& status) {
  const std::shared_ptr<TokenSink> sink = queued.turn.sink;
  queued.turn.lease.Release();
  TurnEnd end = EndOfTurn(queued.turn, queued.submitted, clock_->Monotonic());
  BookFailure(std::move(end), status);
  sink->Failed(status);
  --shared_->live_turns;
}

std::vector<SchedulerLoop::RunningMap::iterator> SchedulerLoop::Able() {
  std::vector<RunningMap::iterator> able;
  std::vector<RunningMap::iterator> arriving;
  for (auto it = running_.begin(); it != running_.end(); ++it) {
    const Running& running = it->second;
    if (!MayPlan(running)) continue;
    const bool waits =
        runner_->info().imports_aside && running.place.arriving();
    (waits ? arriving : able).push_back(it);
  }
  // A step would wait for their states: no other turn has to, but where there
  // is nothing else to do, the step is as good as any to wait in.
  return able.empty() && in_flight_.empty() ? arriving : able;
}

SchedulerLoop::Plan SchedulerLoop::MakePlan() {
  const std::vector<RunningMap::iterator> able = Able();
  std::vector<BatchCandidate> candidates;
  for (const auto& it : able) {
    const Running& running = it->second;
    BatchCandidate candidate;
    candidate.prompt_rows = running.place.rows_to_derive > 0
                                ? running.place.rows_to_derive
                                : running.sequence.prompt_rows_left();
    candidate.decode = candidate.prompt_rows == 0;
    candidates.push_back(candidate);
  }
  const RunnerInfo& info = runner_->info();
  BatchLimits limits;
  limits.max_rows = info.max_rows;
  limits.prompt_rows_per_step = options_.prompt_rows_per_step;
  limits.spare_rows = info.spare_rows;
  const std::vector<int64_t> rows =
      PlanBatch(candidates, limits, steps_planned_);

  Plan plan;
  StepShape& shape = plan.record.shape;
  for (size_t i = 0; i < able.size(); ++i) {
    if (rows[i] == 0) continue;
    (candidates[i].decode ? shape.streams : shape.prompts) = true;
    ++shape.turns;
    PlanRows(able[i]->second, rows[i], plan.step.rows);
    plan.record.owners.resize(plan.step.rows.size(), able[i]->first);
  }
  for (const StepRow& row : plan.step.rows) {
    plan.record.kinds.push_back(row.kind);
    if (row.kind == RowKind::kDecode) shape.decode = true;
    if (row.kind != RowKind::kDerive) ++shape.tokens;
  }
  return plan;
}

void SchedulerLoop::PlanRows(Running& running, int64_t count,
                             std::vector<StepRow>& rows) {
  Placement& place = running.place;
  if (place.rows_to_derive == 0) {
    running.sequence.PlanRows(count, place.slot, rows);
    return;
  }
  StepRow row;
  row.slot = place.slot;
  row.kind = RowKind::kDerive;
  rows.insert(rows.end(), static_cast<size_t>(count), row);
  place.rows_to_derive -= count;
}

bool SchedulerLoop::MayPlan(const Running& running) const {
  const Sequence& sequence = running.sequence;
  switch (sequence.phase()) {
    case SequencePhase::kPrompting:
      return true;
    case SequencePhase::kCollecting:
      return false;
    case SequencePhase::kDecoding:
      break;
  }
  // With the tokens in flight the sink never holds more than park_events.
  return !shared_->end_all &&
         sequence.turn().sink->Unsent() + sequence.tokens_in_flight() <
             options_.park_events;
}

void SchedulerLoop::Submit(Plan plan) {
  ++steps_planned_;
  plan.record.step = runner_->Submit(std::move(plan.step));
  in_flight_.push_back(std::move(plan.record));
}

}  // namespace txl
