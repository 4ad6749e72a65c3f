// SchedulerLoop: from the device to the sinks.

#include <algorithm>
#include <string>
#include <utility>

#include "server/base/error.h"
#include "server/scheduler/scheduler_loop.h"
#include "server/scheduler/turn.h"

namespace txl {
namespace {

std::string FinishName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kMaxTokens:
      return "MAX_TOKENS";
    case FinishReason::kStopText:
      return "STOP_TEXT";
    case FinishReason::kStopToken:
      return "STOP_TOKEN";
    case FinishReason::kEndToken:
      return "END_TOKEN";
    case FinishReason::kServerDrain:
      return "SERVER_DRAIN";
  }
  return "UNSPECIFIED";
}

// The metrics' reason of a turn that has ended well.
std::string ReasonName(TurnKind kind, FinishReason reason) {
  switch (kind) {
    case TurnKind::kGenerate:
      return FinishName(reason);
    case TurnKind::kAppend:
      return "APPENDED";
    case TurnKind::kScore:
    case TurnKind::kAlternatives:
      return "SCORED";
    case TurnKind::kSave:
      return "SAVED";
  }
  return "UNSPECIFIED";
}

}  // namespace

void SchedulerLoop::Collect() {
  const InFlight record = std::move(in_flight_.front());
  in_flight_.pop_front();
  absl::StatusOr<StepResult> result = runner_->Collect(record.step);
  if (result.ok() && result->rows.size() != record.owners.size()) {
    result = absl::InternalError("the step has not as many results as rows");
  }
  const GuessCounts guesses =
      result.ok() && record.shape.guesses > 0
          ? CountGuesses(record.owners, record.kinds, *result)
          : GuessCounts();
  const absl::Duration now = clock_->Monotonic();
  shared_->heartbeat.Beat(now);
  // A guess that was wrong served nobody.
  shared_->queue.NoteStep(
      record.shape.tokens - guesses.guessed + guesses.accepted, now);
  Poll();  // a turn that ended during the step gets nothing of it
  ledger_.Step(record.shape, result.ok() ? &*result : nullptr, clock_->Now());
  ledger_.Guesses(guesses);
  if (result.ok()) guesses_.NoteStep(record.shape, result->device_seconds);
  for (size_t i = 0; i < record.owners.size(); ++i) {
    RowResult row;
    if (result.ok()) {
      row = std::move(result->rows[i]);
    } else {
      row.status = result.status();
    }
    TenantAccount* const account =
        i < record.accounts.size() ? record.accounts[i] : nullptr;
    Emit(record.owners[i], record.kinds[i], account, std::move(row));
  }
}

void SchedulerLoop::Emit(uint64_t id, RowKind kind, TenantAccount* account,
                         RowResult result) {
  const auto it = running_.find(id);
  const bool wanted = it != running_.end() && CheckImport(it);
  if (!wanted || !result.status.ok() || result.rejected) {
    RowCounts row;
    row.Add(kind);
    const bool sampled =
        kind == RowKind::kDecode && result.status.ok() && !result.rejected;
    ledger_.Discarded(row, sampled ? 1 : 0);
    if (account != nullptr && kind == RowKind::kDecode) {
      account->GiveBackTokensOut(1);
    }
    if (wanted && result.rejected) {
      it->second.sequence.RejectRow();
    } else if (wanted) {
      Fail(it, RowFailed(it->second.sequence.turn().sampling, result.status));
    }
    return;
  }
  Sequence& sequence = it->second.sequence;
  switch (kind) {
    case RowKind::kDecode:
      EmitToken(it, std::move(result));
      return;
    case RowKind::kScore:
      sequence.CollectScore(std::move(result));
      break;
    case RowKind::kPrefill:
    case RowKind::kRebuild:
      sequence.CollectRow(kind);
      break;
    case RowKind::kDerive:
      --it->second.slot.rows_underived;
      return;
  }
  if (sequence.all_collected()) FinishInput(it);
}

bool SchedulerLoop::CheckImport(RunningMap::iterator it) {
  TurnSlot& slot = it->second.slot;
  if (!slot.import.valid()) return true;
  const absl::Status status = slot.import.get();
  const double seconds =
      absl::ToDoubleSeconds(clock_->Monotonic() - slot.entered);
  metrics_->Update([&](Snapshot& s) {
    ++(status.ok() ? s.image_restores_ok : s.image_restores_failed);
    if (status.ok()) s.distributions.restore_seconds.Observe(seconds);
  });
  if (status.ok()) return true;
  // An image that does not fit or is damaged stays so.
  if (absl::IsInvalidArgument(status) || absl::IsDataLoss(status)) {
    slots_.DropBadImage(it->second.sequence.lease());
    prefixes_.DropImage(it->second.prefix);
  }
  slot.import_failed = true;
  Fail(it, StepFailed("the session's state could not be restored", status));
  return false;
}

void SchedulerLoop::EmitToken(RunningMap::iterator it, RowResult result) {
  Running& running = it->second;
  const int32_t token = result.token_id;
  Sequence::Generated generated =
      running.sequence.CommitToken(std::move(result), clock_->Monotonic());
  guesses_.Saw(it->first, token);
  slots_.Committed(running.slot);
  if (generated.time.first) {
    prefixes_.InputDone(running.sequence, running.slot, running.prefix);
  }
  ledger_.KeptToken(running.sequence.TakePending(), generated.time);
  running.sequence.turn().sink->Token(std::move(generated.event));
  if (generated.reason.has_value()) {
    Finish(it, *generated.reason);
  } else if (shared_->end_all) {
    Finish(it, FinishReason::kServerDrain);
  } else {
    guesses_.LookAside(it->first, running.sequence.turn().lease.token_ids(),
                       running.sequence.generated());
  }
}

void SchedulerLoop::FinishInput(RunningMap::iterator it) {
  Running& running = it->second;
  Sequence& sequence = running.sequence;
  const TurnKind kind = sequence.turn().kind;
  const bool commits = kind == TurnKind::kAppend || kind == TurnKind::kGenerate;
  if (commits && sequence.CommitInput(clock_->Monotonic())) {
    slots_.Committed(running.slot);
  }
  ledger_.KeptInput(sequence.TakePending(), InputTokens(sequence.turn()),
                    sequence.turn().tenant_counts);
  const bool began = sequence.Started().position == 0;
  if (prefixes_.on() && began && sequence.scores_input()) {
    running.prefix.scores = sequence.InputScores();
  }
  std::vector<ScoredToken> scores = sequence.TakeScores();
  if (!scores.empty()) sequence.turn().sink->Scored(std::move(scores));
  Finish(it, sequence.reason());
}

void SchedulerLoop::Finish(RunningMap::iterator it, FinishReason reason) {
  Running& running = it->second;
  const std::shared_ptr<TokenSink> sink = running.sequence.turn().sink;
  TenantAccount* const account = running.sequence.turn().account;
  const absl::Duration now = clock_->Monotonic();
  const TurnKind kind = running.sequence.turn().kind;
  const std::string name = ReasonName(kind, reason);
  const TurnFinished finished = running.sequence.Finish(reason, now);
  TurnEnd end = running.sequence.EndAt(now);
  end.reason = name;
  Retire(it, kind == TurnKind::kGenerate ? name : "OK", &finished);
  running_.erase(it);
  ledger_.TurnEnded(end);
  if (account != nullptr) account->EndTurn(0, finished.cached_tokens);
  sink->Finished(finished);
  --shared_->live_turns;
}

void SchedulerLoop::Fail(RunningMap::iterator it, const absl::Status& status) {
  Running& running = it->second;
  const std::shared_ptr<TokenSink> sink = running.sequence.turn().sink;
  TenantAccount* const account = running.sequence.turn().account;
  TurnEnd end = running.sequence.EndAt(clock_->Monotonic());
  Retire(it, GetErrorDetails(status).reason, nullptr);
  running_.erase(it);
  BookFailure(std::move(end), status);
  if (account != nullptr) account->EndTurn();
  sink->Failed(status);
  --shared_->live_turns;
}

void SchedulerLoop::BookFailure(TurnEnd end, const absl::Status& status) {
  const std::string reason = GetErrorDetails(status).reason;
  end.code = status.code();
  end.reason = reason;
  ledger_.TurnEnded(end);
}

void SchedulerLoop::Retire(RunningMap::iterator it, const std::string& outcome,
                           const TurnFinished* finished) {
  Running& running = it->second;
  Sequence& sequence = running.sequence;
  const bool away = running.rest.away();
  resting_.End(it->first, running.rest, clock_->Monotonic());
  if (away) {
    const auto returns = std::find_if(entering_.begin(), entering_.end(),
                                      [it](const Entering& entering) {
                                        return !entering.queued.has_value() &&
                                               entering.returning == it->first;
                                      });
    if (returns != entering_.end()) TurnAway(returns);
  }
  // What the turn ran and did not commit.
  ledger_.Discarded(sequence.TakePending(), 0);
  sequence.RecordEnd(outcome, finished);
  // Without a commit the rows of the session may be overwritten, may still be
  // on their way in, or may never have been there.
  const TurnSlot& slot = running.slot;
  const bool arrived =
      slot.arrived() && (slot.rebuild_ids == 0 || sequence.advanced());
  const bool intact =
      arrived && sequence.rows_past_commit() <= runner_->info().spare_rows;
  if (sequence.lanes() != nullptr) slots_.GiveBack(sequence.lanes()->slots());
  guesses_.Ended(it->first);
  BookRebuild(running);
  if (running.prefix.leader.has_value()) --waiting_;
  prefixes_.Ended(it->first, sequence, slot, running.prefix,
                  arrived && finished != nullptr);
  if (intact && finished != nullptr && sequence.turn().moves_out) {
    slots_.LeaveEmpty(slot, sequence.lease(), clock_->Monotonic());
  } else {
    slots_.Leave(slot, sequence.lease(), intact, clock_->Monotonic());
  }
  shared_->queue.Refund(sequence.turn(), sequence.tokens_unused());
  sequence.lease().Release();
}

void SchedulerLoop::BookRebuild(const Running& running) {
  if (running.slot.rebuild_ids == 0) return;
  const bool done = running.sequence.advanced();
  metrics_->Update(
      [&](Snapshot& s) { ++(done ? s.rebuilds_ok : s.rebuilds_failed); });
}

}  // namespace txl
