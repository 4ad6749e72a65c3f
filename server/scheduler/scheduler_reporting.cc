// SchedulerLoop: what it tells of itself.

#include "server/scheduler/scheduler_loop.h"
#include "server/scheduler/scheduler_report.h"

namespace txl {
namespace {

TurnReport ReportOf(const Turn& turn, absl::Duration submitted,
                    absl::Duration now, const char* state) {
  TurnReport report;
  report.state = state;
  report.kind = turn.kind;
  report.key = turn.lease.key();
  report.name = turn.lease.name();
  report.tenant = TenantName(turn);
  report.priority = turn.priority;
  report.age = now - submitted;
  report.tokens_in = TokensIn(turn);
  return report;
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
  report.slot = running.away ? -1 : running.slot.index;
  report.rows_left = sequence.prompt_rows_left();
  report.tokens_in_flight = sequence.tokens_in_flight();
  report.generated = sequence.generated();
  report.parked = running.parked_since.has_value();
  report.paused = running.paused_until.has_value();
  report.away = running.away;
  return report;
}

}  // namespace txl
