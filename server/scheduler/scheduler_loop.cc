// SchedulerLoop: what may have changed, and from a slot to the device.

#include "server/scheduler/scheduler_loop.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "server/scheduler/batch_policy.h"
#include "server/scheduler/scheduler_report.h"
#include "server/scheduler/turn.h"

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
      slots_(parts.runner, parts.store, parts.metrics, parts.clock),
      resting_(options, parts.metrics),
      guesses_(
          parts.runner->info().verifies_guesses ? options.speculate_tokens : 0,
          options_.ngrams.get()),
      prefixes_(options, parts.runner, parts.metrics) {}

bool SchedulerLoop::Iterate() {
  if (shared_->live_turns > 0) shared_->heartbeat.Start(clock_->Monotonic());
  AnswerReports();
  for (const std::string& tenant : shared_->forgotten_tenants.TakeAll()) {
    prefixes_.DropTenant(tenant);
  }
  for (const uint64_t key : shared_->due_states.TakeAll()) {
    if (!slots_.SaveIdle(key)) --shared_->live_turns;
  }
  shared_->live_turns -= slots_.PollSaves();
  Poll();
  prefixes_.Poll([this](uint64_t id) {
    const auto it = running_.find(id);
    return it == running_.end() ? 0 : it->second.sequence.collected_end();
  });
  Admit();
  ServeWaiting();
  bool submitted = false;
  const bool waits = guesses_.waits() && !in_flight_.empty();
  if (!waits &&
      static_cast<int32_t>(in_flight_.size()) < runner_->info().depth) {
    StepPlan plan;
    InFlight record = PlanStep(plan);
    submitted = !plan.rows.empty();
    if (submitted) Submit(std::move(plan), std::move(record));
  }
  stepping_ = !in_flight_.empty();
  if (in_flight_.empty()) {
    if (!entering_.empty()) {
      WaitToEnter();
      return true;
    }
    if (slots_.saving()) {
      slots_.WaitForSave();
      shared_->heartbeat.Beat(clock_->Monotonic());
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
  const AdmissionQueue& queue = shared_->queue;
  const absl::Duration now = clock_->Monotonic();
  absl::Duration limit = std::min(
      {next_expiry_, queue.EarliestDeadline(), queue.EarliestRefill(now),
       queue.OldestSubmitted() +
           std::min(options_.queue_limit, options_.longest_turn)});
  for (const auto& [id, running] : running_) {
    const Sequence& sequence = running.sequence;
    limit = std::min({limit, sequence.turn().deadline.value_or(limit),
                      sequence.submitted() + options_.longest_turn,
                      sequence.submitted() + sequence.turn().longest,
                      running.rest.NextLimit(options_)});
  }
  return std::max(limit - now, absl::ZeroDuration());
}

void SchedulerLoop::EndWith(const absl::Status& status) {
  while (auto queued = shared_->queue.TakeFirst(
             clock_->Monotonic(), [](const QueuedTurn&) { return true; })) {
    Refuse(*std::move(queued), status);
  }
  while (auto pushed_out = shared_->queue.TakePushedOut(clock_->Monotonic())) {
    Refuse(*std::move(pushed_out), status);
  }
  while (!entering_.empty()) {
    std::optional<QueuedTurn> queued = std::move(entering_.front().queued);
    TurnAway(entering_.begin());
    if (queued.has_value()) Refuse(*std::move(queued), status);
  }
  while (!running_.empty()) Fail(running_.begin(), status);
  while (!in_flight_.empty()) Collect();
}

void SchedulerLoop::Poll() {
  const absl::Duration now = clock_->Monotonic();
  if (now >= next_expiry_) {
    store_->ExpireNow();
    next_expiry_ = now + kExpiryInterval;
  }
  while (auto pushed_out = shared_->queue.TakePushedOut(now)) {
    Refuse(*std::move(pushed_out), QueueFull(options_.retry_after));
  }
  std::optional<absl::Status> end;
  while (auto queued =
             shared_->queue.TakeFirst(now, [&](const QueuedTurn& queued) {
               end = EndOfQueued(queued, now);
               if (!end.has_value() &&
                   now - queued.submitted >= options_.queue_limit) {
                 end =
                     QueuedTooLong(options_.queue_limit, options_.retry_after);
               }
               return end.has_value();
             })) {
    Refuse(*std::move(queued), *end);
  }
  for (auto it = entering_.begin(); it != entering_.end();) {
    const auto current = it++;
    if (!current->queued.has_value()) continue;  // PollRunning's
    end = EndOfQueued(*current->queued, now);
    if (!end.has_value()) continue;
    QueuedTurn queued = *std::move(current->queued);
    TurnAway(current);
    Refuse(std::move(queued), *end);
  }
  PollRunning(now);
}

std::optional<absl::Status> SchedulerLoop::EndOfQueued(
    const QueuedTurn& queued, absl::Duration now) const {
  if (shared_->end_all && queued.turn.kind != TurnKind::kSave) {
    return ServerDraining();
  }
  return EndOf(queued.turn, queued.submitted, options_.longest_turn, now);
}

std::vector<SchedulerLoop::RunningMap::iterator>
SchedulerLoop::PlannableTurns() {
  std::vector<RunningMap::iterator> able;
  std::vector<RunningMap::iterator> arriving;
  Allowance allowance{clock_->Monotonic(), {}};
  for (auto it = running_.begin(); it != running_.end(); ++it) {
    Running& running = it->second;
    if (running.rest.rests() || !MayPlan(running)) continue;
    if (running.prefix.leader.has_value()) continue;
    if (resting_.asked(it->first) || !allowance.Grant(running)) continue;
    const bool waits = runner_->info().imports_aside && running.slot.arriving();
    (waits ? arriving : able).push_back(it);
  }
  // A step would wait for their states: no other turn has to, but where there
  // is nothing else to do, the step is as good as any to wait in.
  return able.empty() && in_flight_.empty() ? arriving : able;
}

SchedulerLoop::InFlight SchedulerLoop::PlanStep(StepPlan& plan) {
  const std::vector<RunningMap::iterator> turns = PlannableTurns();
  std::vector<BatchCandidate> candidates;
  for (const auto& it : turns) {
    ShareOut(it->second);
    const Running& running = it->second;
    BatchCandidate candidate;
    candidate.prompt_rows = running.slot.rows_to_derive > 0
                                ? running.slot.rows_to_derive
                                : running.sequence.prompt_rows_left();
    candidate.decode = candidate.prompt_rows == 0;
    if (running.slot.rows_to_derive > 0) {
      candidate.rows_later = running.sequence.prompt_rows_left();
    }
    candidate.priority = running.sequence.turn().priority;
    candidates.push_back(candidate);
  }
  const RunnerInfo& info = runner_->info();
  BatchLimits limits;
  limits.max_rows = info.max_rows;
  limits.prompt_rows_per_step = options_.prompt_rows_per_step;
  limits.spare_rows = info.spare_rows;
  const std::vector<int64_t> rows = Divide(turns, candidates, limits);
  const std::vector<absl::Span<const int32_t>> guesses =
      ChooseGuesses(turns, rows, candidates,
                    std::accumulate(rows.begin(), rows.end(),
                                    int64_t{info.max_rows}, std::minus<>()));

  InFlight record;
  StepShape& shape = record.shape;
  for (size_t i = 0; i < turns.size(); ++i) {
    if (rows[i] == 0) continue;
    (candidates[i].decode ? shape.streams : shape.prompts) = true;
    ++shape.turns;
    const size_t before = plan.rows.size();
    PlanRows(turns[i]->second, rows[i], plan.rows);
    if (!guesses.empty()) {
      Running& running = turns[i]->second;
      running.sequence.PlanGuesses(guesses[i], running.slot.index, plan.rows);
      shape.guesses += std::ssize(guesses[i]);
    }
    record.owners.resize(plan.rows.size(), turns[i]->first);
    TenantAccount* const account = turns[i]->second.sequence.turn().account;
    if (account == nullptr) continue;
    record.accounts.resize(before);  // turns before it that have none
    record.accounts.resize(plan.rows.size(), account);
    TakeTokensOut(absl::MakeSpan(plan.rows).subspan(before), account);
  }
  for (const StepRow& row : plan.rows) {
    record.kinds.push_back(row.kind);
    if (row.kind == RowKind::kDecode) shape.decode = true;
    if (row.kind != RowKind::kDerive) ++shape.tokens;
  }
  return record;
}

void SchedulerLoop::PlanRows(Running& running, int64_t count,
                             std::vector<StepRow>& rows) {
  TurnSlot& slot = running.slot;
  if (slot.rows_to_derive == 0 && running.sequence.in_lanes()) {
    std::vector<int32_t> clear;
    running.sequence.PlanLaneRows(count, rows, clear);
    for (const int32_t cleared : clear) runner_->Clear(cleared);
    return;
  }
  if (slot.rows_to_derive == 0) {
    running.sequence.PlanRows(count, slot.index, rows);
    return;
  }
  StepRow row = {.slot = slot.index, .kind = RowKind::kDerive};
  rows.insert(rows.end(), static_cast<size_t>(count), row);
  slot.rows_to_derive -= count;
}

void SchedulerLoop::ShareOut(Running& running) {
  // A copy is of a whole state.
  const TurnSlot& slot = running.slot;
  if (!running.sequence.in_lanes() || slot.rows_to_derive > 0) return;
  ScoringLanes& lanes = *running.sequence.lanes();
  const bool wanted = !shared_->queue.empty();
  if (lanes.lanes() > 1) slots_.GiveBack(lanes.TakeSlots(wanted));
  if (wanted || lanes.lanes() > 1 || slot.import.valid()) return;
  if (!lanes.may_copy()) return;
  const int64_t useful =
      UsefulLanes(slots_.free_slots(), lanes.alternatives_waiting(),
                  lanes.rows_waiting(), options_.prompt_rows_per_step);
  if (useful == 1) return;
  const std::vector<int32_t> taken = slots_.TakeFree(useful - 1);
  for (const int32_t to : taken) {
    prefixes_.Overwrite(to, 0);
    runner_->Copy(slot.index, to);
  }
  lanes.AddLanes(taken);
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

void SchedulerLoop::Submit(StepPlan plan, InFlight record) {
  ++steps_planned_;
  record.step = runner_->Submit(std::move(plan));
  for (size_t i = 0; prefixes_.on() && i < record.owners.size(); ++i) {
    if (i > 0 && record.owners[i] == record.owners[i - 1]) continue;
    Running& running = running_.at(record.owners[i]);
    prefixes_.Planned(record.owners[i], running.sequence, running.slot,
                      running.prefix);
  }
  in_flight_.push_back(std::move(record));
}

// SchedulerLoop: what it tells of itself.

namespace {

TurnReport ReportOf(const Turn& turn, absl::Duration submitted,
                    absl::Duration now, const char* state) {
  return {.state = state,
          .kind = turn.kind,
          .key = turn.lease.key(),
          .name = turn.lease.name(),
          .tenant = TenantName(turn),
          .priority = turn.priority,
          .age = now - submitted,
          .tokens_in = TokensIn(turn)};
}

const char* PhaseName(SequencePhase phase) {
  switch (phase) {
    case SequencePhase::kPrompting:
      return "prompting";
    case SequencePhase::kDecoding:
      return "decoding";
    case SequencePhase::kCollecting:
      return "collecting";
  }
  return "";
}

void ReportSlots(const SlotTable& table, absl::Duration now,
                 SchedulerReport& report) {
  report.slots_total = table.slots();
  report.slots_used = table.used();
  for (int32_t slot = 0; slot < table.slots(); ++slot) {
    const SlotTable::Entry& entry = table.at(slot);
    if (!entry.key.has_value()) continue;
    if (report.slots.size() == kMostReported) break;
    report.slots.push_back({slot, *entry.key, entry.rows, entry.running,
                            entry.leaving, entry.image_current,
                            now - entry.last_use});
  }
}

}  // namespace

void SchedulerLoop::AnswerReports() {
  for (const TakeReport& take : shared_->reports.TakeAll()) take(Report());
}

SchedulerReport SchedulerLoop::Report() const {
  const absl::Duration now = clock_->Monotonic();
  SchedulerReport report;
  report.steps_planned = static_cast<int64_t>(steps_planned_);
  report.steps_in_flight = static_cast<int64_t>(in_flight_.size());
  const auto add = [&report](TurnReport turn) {
    ++report.all_turns;
    if (report.turns.size() < kMostReported) {
      report.turns.push_back(std::move(turn));
    }
  };
  for (const auto& [id, running] : running_) add(ReportOf(running, now));
  for (const Entering& entering : entering_) {
    if (!entering.queued.has_value()) continue;  // one of running_
    TurnReport turn = txl::ReportOf(
        entering.queued->turn, entering.queued->submitted, now, "entering");
    turn.slot = entering.slot.index;
    add(std::move(turn));
  }
  shared_->queue.ForEach([&](const QueuedTurn& queued) {
    add(txl::ReportOf(queued.turn, queued.submitted, now, "queued"));
  });
  ReportSlots(slots_.table(), now, report);
  return report;
}

TurnReport SchedulerLoop::ReportOf(const Running& running, absl::Duration now) {
  const Sequence& sequence = running.sequence;
  TurnReport report = txl::ReportOf(sequence.turn(), sequence.submitted(), now,
                                    PhaseName(sequence.phase()));
  report.unsent = sequence.turn().sink->Unsent();
  report.slot = running.rest.away() ? -1 : running.slot.index;
  report.rows_left = sequence.prompt_rows_left();
  report.tokens_in_flight = sequence.tokens_in_flight();
  report.generated = sequence.generated();
  report.parked = running.rest.parked();
  report.paused = running.rest.paused();
  report.away = running.rest.away();
  return report;
}

}  // namespace txl
