// World: what a call may hear, event by event.

#include <algorithm>
#include <cmath>

#include "tests/server/simulation/world.h"

namespace txl::simulation {
namespace {

bool Timed(const TurnTiming& timing) {
  return timing.queued_seconds >= 0 && timing.prefill_seconds >= 0 &&
         timing.decode_seconds >= 0;
}

}  // namespace

void World::OnStarted(Call& call, const TurnStarted& started) {
  Note("call ", call.id, " started at ", started.position);
  if (call.phase != Call::Phase::kSubmitted || call.started.has_value()) {
    Diverge("call ", call.id, " starts out of order");
  }
  if (started.position != static_cast<int64_t>(call.before.size()) ||
      started.prompt_tokens !=
          static_cast<int64_t>(call.request.input.size()) ||
      started.replayed_tokens != call.resumed ||
      started.seed != call.turn_seed) {
    Diverge("call ", call.id, " starts as another turn");
  }
}

void World::OnToken(Call& call, const TokenEvent& token) {
  Note("call ", call.id, " token ", token.index, " is ", token.token_id);
  const auto index = static_cast<int64_t>(call.tokens.size());
  if (call.phase != Call::Phase::kSubmitted || !call.started.has_value() ||
      call.released || call.request.kind != TurnKind::kGenerate) {
    Diverge("call ", call.id, " gets a token out of order");
  }
  if (token.index != index) Diverge("call ", call.id, " misses a token");
  if (static_cast<int64_t>(token.top_logprobs.size()) !=
      call.request.top_logprobs) {
    Diverge("call ", call.id, " gets other alternatives than asked for");
  }
  if (index < call.resumed) {
    const TokenEvent& first = call.resumes->tokens[static_cast<size_t>(index)];
    if (token.token_id != first.token_id || token.logprob != first.logprob ||
        token.text != first.text) {
      Diverge("call ", call.id, " hears another token again");
    }
    return;
  }
  if (model.ReasonToStop(call).has_value()) {
    Diverge("call ", call.id, " goes on after its end");
  }
  if (token.token_id != model.NextToken(call)) {
    Diverge("call ", call.id, " token ", index, " is ", token.token_id,
            ", not ", model.NextToken(call));
  }
  if (token.logprob != model.LogProb(call.context, token.token_id)) {
    Diverge("call ", call.id, " token ", index, " is as probable as another");
  }
}

void World::OnScored(Call& call, const std::vector<ScoredToken>& scored) {
  const Ids& input = call.request.input;
  if (call.phase != Call::Phase::kSubmitted || !call.started.has_value() ||
      call.released || scored.size() != input.size()) {
    return Diverge("call ", call.id, " is scored out of order");
  }
  Ids context = call.before;
  for (size_t i = 0; i < input.size(); ++i) {
    std::optional<float> expected;
    if (!context.empty()) expected = model.LogProb(context, input[i]);
    if (scored[i].token_id != input[i] || scored[i].logprob != expected) {
      Diverge("call ", call.id, " has a wrong score at ", i);
    }
    context.push_back(input[i]);
  }
}

// What prompts of its tenant can have fed for it.
int64_t World::MostCached(const Call& call) const {
  const Ids& input = call.request.input;
  if (!call.before.empty() || call.resumed > 0 || input.empty()) return 0;
  size_t most = 0;
  for (const std::shared_ptr<Call>& other : calls) {
    if (other.get() == &call || other->account != call.account) continue;
    const auto differ =
        std::mismatch(input.begin(), input.end() - 1, other->context.begin(),
                      other->context.end());
    most = std::max(most, static_cast<size_t>(differ.first - input.begin()));
  }
  return static_cast<int64_t>(most);
}

void World::OnFinished(Call& call, const TurnFinished& finished) {
  Note("call ", call.id, " finished at ", finished.position);
  if (call.phase != Call::Phase::kSubmitted || !call.started.has_value()) {
    return Diverge("call ", call.id, " ends out of order");
  }
  const Request& asked = call.request;
  if (asked.kind == TurnKind::kGenerate) {
    const std::optional<FinishReason> reason = model.ReasonToStop(call);
    if (!reason.has_value() && !end_all) {
      Diverge("call ", call.id, " stops early");
    }
    if (finished.reason != reason.value_or(FinishReason::kServerDrain)) {
      Diverge("call ", call.id, " stops for another reason");
    }
  }
  const bool scores = asked.kind == TurnKind::kScore ||
                      (asked.kind == TurnKind::kAppend && asked.return_scored);
  if (scores != !call.scored.empty()) {
    Diverge("call ", call.id, " ends with ", call.scored.size(), " scores");
  }
  const Ids after = call.released ? Ids() : model.IdsAfter(call, true);
  if (!call.released &&
      finished.position != static_cast<int64_t>(after.size())) {
    Diverge("call ", call.id, " ends at ", finished.position, ", not ",
            after.size());
  }
  if (finished.prompt_tokens != static_cast<int64_t>(asked.input.size()) ||
      finished.generated_tokens != static_cast<int64_t>(call.tokens.size()) ||
      !Timed(finished.timing)) {
    Diverge("call ", call.id, " ends with other counts");
  }
  if (finished.cached_tokens > 0) faults.Fired(Fault::kPrefixFound);
  if (finished.cached_tokens > MostCached(call)) {
    Diverge("call ", call.id, " began with ", finished.cached_tokens,
            " rows of somebody else");
  }
  Settle(call, /*finished=*/true,
         finished.reason != FinishReason::kServerDrain);
}

void World::OnFailed(Call& call, const absl::Status& status) {
  const std::string outcome = Outcome(status);
  Note("call ", call.id, " failed: ", outcome);
  if (call.phase != Call::Phase::kSubmitted) {
    return Diverge("call ", call.id, " fails out of order");
  }
  if (FailuresOf(call).count(outcome) == 0) {
    Diverge("call ", call.id, " has no reason for ", outcome);
  }
  if (outcome == "INTERNAL STEP_FAILED" &&
      ++steps_failed_ > runner.turns_hit()) {
    Diverge("more turns failed than faults can have hit");
  }
  if (outcome == "CANCELLED CANCELLED") faults.Fired(Fault::kCancelled);
  if (outcome == "DEADLINE_EXCEEDED DEADLINE_EXCEEDED") {
    faults.Fired(Fault::kDeadlinePasses);
  }
  if (outcome == "ABORTED SESSION_DELETED") {
    faults.Fired(Fault::kDeletedInTurn);
  }
  if (outcome == "RESOURCE_EXHAUSTED CLIENT_TOO_SLOW") {
    faults.Fired(Fault::kReaderTooSlow);
  }
  if (outcome == "RESOURCE_EXHAUSTED NO_SESSION_MEMORY") {
    faults.Fired(Fault::kSlotsFull);
  }
  if (outcome == "RESOURCE_EXHAUSTED QUEUE_FULL") {
    faults.Fired(Now() - call.submitted >= odds.scheduler.queue_limit
                     ? Fault::kQueuedTooLong
                     : Fault::kPushedOut);
  }
  if (Now() - call.submitted >= odds.scheduler.longest_turn) {
    faults.Fired(Fault::kTurnTooLong);
  }
  Settle(call, /*finished=*/false, /*recorded=*/false);
}

// Why the call may fail now.
Outcomes World::FailuresOf(const Call& call) {
  Outcomes may;
  if (runner.turns_hit() > 0) may.insert("INTERNAL STEP_FAILED");
  if (call.cancel->why() == CancelToken::Why::kCancelled) {
    may.insert("CANCELLED CANCELLED");
  }
  const absl::Duration age = Now() - call.submitted;
  if (call.cancel->why() == CancelToken::Why::kDeadline ||
      (call.deadline.has_value() && Now() >= *call.deadline) ||
      age >= odds.scheduler.longest_turn) {
    may.insert("DEADLINE_EXCEEDED DEADLINE_EXCEEDED");
  }
  if (call.session->deleted) may.insert("ABORTED SESSION_DELETED");
  if (call.superseded) may.insert("ABORTED SUPERSEDED");
  if (end_all || scheduler == nullptr) may.insert("UNAVAILABLE DRAINING");
  // It may have read after that was decided.
  if (TooSlow(call.reader) ||
      (call.reader_before.has_value() && TooSlow(*call.reader_before))) {
    may.insert("RESOURCE_EXHAUSTED CLIENT_TOO_SLOW");
  }
  if (OverQuota(call)) may.insert("RESOURCE_EXHAUSTED QUOTA");
  // Others may push it out of the queue.
  if (!call.started.has_value() &&
      (age >= odds.scheduler.queue_limit || !accounts.empty())) {
    may.insert("RESOURCE_EXHAUSTED QUEUE_FULL");
  }
  const bool no_slot = odds.scheduler.min_idle > absl::ZeroDuration();
  if (!call.started.has_value() && no_slot) {
    may.insert("RESOURCE_EXHAUSTED NO_SESSION_MEMORY");
  }
  return may;
}

bool World::OverQuota(const Call& call) {
  const auto& longest = call.limits.longest_turn;
  return longest.has_value() && Now() - call.submitted >= *longest;
}

bool World::TooSlow(const Reader& reader) {
  if (!reader.lags_since().has_value()) return false;
  const SchedulerOptions& limits = odds.scheduler;
  // Where there is room for few turns without a slot, one of them has to go.
  return odds.few_parked ||
         Now() - reader.last_read() >= limits.slow_reader_limit ||
         Now() - *reader.lags_since() >= limits.rate_window;
}

void World::Settle(Call& call, bool finished, bool recorded) {
  if (call.must_finish.value_or(recorded) != recorded) {
    Diverge("call ", call.id, " ends otherwise than others have seen");
  }
  if (call.resumed == 0 &&
      call.reader.most_unsent() > odds.scheduler.park_events) {
    Diverge("call ", call.id, " holds ", call.reader.most_unsent(), " events");
  }
  if (call.released) return;
  model.Released(call, model.IdsAfter(call, finished), within_since(), Now());
}

void World::MarkDue() {
  for (const auto& call : calls) {
    if (call->phase != Call::Phase::kSubmitted) continue;
    call->reader_before = call->reader;
    call->was_due = call->must_end;
    call->must_end = call->cancel->why() != CancelToken::Why::kNone ||
                     (call->deadline.has_value() && Now() >= *call->deadline) ||
                     Now() - call->submitted >= odds.scheduler.longest_turn ||
                     OverQuota(*call) || call->session->deleted ||
                     call->session->waiter != nullptr;
  }
}

}  // namespace txl::simulation
