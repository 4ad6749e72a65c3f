// World: calls on their way to their turns, as server/api/turn_submit.cc leads
// them, with what the model says of each of their stations.

#include <utility>

#include "tests/server/simulation/world.h"

namespace txl::simulation {
namespace {

std::string Joined(const Outcomes& outcomes) {
  std::string all;
  for (const std::string& outcome : outcomes) all += "[" + outcome + "]";
  return all;
}

Reader DrawReader(World& world) {
  ReaderKind kind = ReaderKind::kFast;
  if (!world.mended && world.random.Chance(world.odds.faults.slow_reader)) {
    kind = static_cast<ReaderKind>(world.random.Between(1, 3));
  }
  if (kind == ReaderKind::kStopped) world.faults.Fired(Fault::kReaderStops);
  if (kind == ReaderKind::kTrickling) {
    world.faults.Fired(Fault::kReaderTrickles);
  }
  return Reader(kind, world.odds.scheduler.park_events);
}

bool SameEvent(const TokenEvent& a, const TokenEvent& b) {
  return a.index == b.index && a.token_id == b.token_id && a.text == b.text &&
         a.logprob == b.logprob &&
         a.top_logprobs.size() == b.top_logprobs.size();
}

}  // namespace

void World::Send(Request request) {
  const auto call =
      std::make_shared<Call>(static_cast<int>(calls.size()), std::move(request),
                             DrawReader(*this), this);
  calls.push_back(call);
  call->seed = random.Next();
  if (!mended && random.Chance(odds.faults.deadline)) {
    call->deadline = Now() + absl::Milliseconds(random.Below(2000));
  }
  if (!mended && odds.priorities) {
    call->priority = static_cast<int32_t>(random.Below(kMostPriority + 1));
  }
  if (!mended && !accounts.empty() && random.Chance(0.9)) {
    const int64_t tenant = random.Below(static_cast<int64_t>(accounts.size()));
    call->account = accounts[static_cast<size_t>(tenant)].get();
    call->limits = odds.tenants[static_cast<size_t>(tenant)];
  }
  const Request& asked = call->request;
  Note("call ", call->id, ": ", static_cast<int>(asked.kind), " in '",
       asked.session, "' as '", asked.identity.request_id, "' ",
       asked.identity.digest, ", ", asked.input.size(), " ids");
  if (asked.session.empty()) return SendTemporary(call);

  Expire();
  const SessionPtr session = model.Find(asked.session);
  const Outcomes may =
      session == nullptr ? model.WhyNot(asked.session)
                         : model.OfAcquire(*session, asked.identity, within());
  acquiring_ = true;
  absl::StatusOr<std::optional<SessionLease>> now = store->AcquireFor(
      SessionName::OfDefaultTenant(asked.session), asked.identity,
      [this, call](absl::StatusOr<SessionLease> lease) {
        OnLease(call, std::move(lease));
      });
  acquiring_ = false;
  const bool waits = now.ok() && !now->has_value();
  const std::string outcome = waits ? "WAITS" : Outcome(now.status());
  if (may.count(outcome) == 0) {
    return Diverge("call ", call->id, " gets ", outcome,
                   " for its session, not ", Joined(may));
  }
  if (waits) return Waits(call, session);
  if (!now.ok()) return Refused(*call, now.status());
  SessionLease lease = **std::move(now);
  CheckLeft(*session, IdsOf(lease));
  model.Acquired(session, *call, IdsOf(lease), within_since(), Now());
  Use(call, std::move(lease));
}

void World::SendTemporary(const std::shared_ptr<Call>& call) {
  Expire();
  const int64_t most = MostSessions();
  absl::StatusOr<SessionLease> lease = store->AcquireTemporary();
  if (!lease.ok()) {
    CheckNoRoom(most);
    return Refused(*call, lease.status());
  }
  model.Acquired(model.Create("", absl::InfiniteDuration(), Now()), *call, {},
                 Now(), Now());
  Use(call, *std::move(lease));
}

void World::Waits(const std::shared_ptr<Call>& call,
                  const SessionPtr& session) {
  faults.Fired(Fault::kSuperseded);
  faults.Fired(Fault::kRetryOfRunning);
  call->phase = Call::Phase::kWaiting;
  call->waits_for = session;
  Call* const displaced = session->waiter;
  if (displaced != nullptr && displaced->phase == Call::Phase::kWaiting) {
    // It was not told, so it gets the lease in a moment, and loses it again.
    if (!within()) Diverge("call ", displaced->id, " was not told");
    session->granted = displaced;
    displaced->superseded = true;
  } else {
    session->holder->superseded = true;
  }
  if (displaced != nullptr) faults.Fired(Fault::kSupersededTwice);
  session->waiter = call.get();
}

void World::OnLease(const std::shared_ptr<Call>& call,
                    absl::StatusOr<SessionLease> lease) {
  const SessionPtr session = call->waits_for;
  Note("call ", call->id, " waited and gets ", Outcome(lease.status()));
  if (call->phase != Call::Phase::kWaiting) {
    return Diverge("call ", call->id, " is told twice");
  }
  if (!lease.ok()) {
    const std::string outcome = Outcome(lease.status());
    const bool deleted =
        session->deleted && outcome == "ABORTED SESSION_DELETED";
    const bool superseded = acquiring_ && outcome == "ABORTED SUPERSEDED";
    if (!deleted && !superseded) {
      Diverge("call ", call->id, " waited for ", outcome);
    }
    if (deleted) faults.Fired(Fault::kDeletedWhileWaiting);
    if (deleted && session->waiter == call.get()) session->waiter = nullptr;
    return Refused(*call, lease.status());
  }
  if (session->waiter != call.get() && session->granted != call.get()) {
    Diverge("call ", call->id, " gets a lease that is another's");
  }
  if (session->deleted) faults.Fired(Fault::kDeletedInHandover);
  CheckLeft(*session, IdsOf(*lease));
  model.Acquired(session, *call, IdsOf(*lease), within_since(), Now());
  call->phase = Call::Phase::kHolding;
  AtPoint(Fault::kInterleavedInCallback);
  if (random.Chance(odds.faults.callback_late)) {
    tasks_.push_back({call, *std::move(lease)});
  } else {
    Use(call, *std::move(lease));
  }
}

// A session changes hands at a token's border.
void World::CheckLeft(const ModelSession& session, const Ids& ids) {
  for (const Ids& may : model.IdsLeft(session)) {
    if (ids == may) return;
  }
  Diverge("'", session.name, "' is handed on with ", ids.size(), " ids");
}

void World::RunTask() {
  if (tasks_.empty()) return;
  const auto chosen =
      tasks_.begin() + random.Below(static_cast<int64_t>(tasks_.size()));
  Task task = std::move(*chosen);
  tasks_.erase(chosen);
  Note("call ", task.call->id, " uses its lease");
  Use(task.call, std::move(task.lease));
}

void World::Use(const std::shared_ptr<Call>& call, SessionLease lease) {
  call->phase = Call::Phase::kHolding;
  if (IdsOf(lease) != call->before) {
    Diverge("call ", call->id, " finds ", lease.position(), " ids, not ",
            call->before.size());
  }
  const absl::StatusOr<std::shared_ptr<const TurnRecord>> record =
      lease.RecordFor(call->request.identity);
  CheckRecord(*call, record);
  if (!record.ok()) {
    LetGo(*call, std::move(lease));
    return Refused(*call, record.status());
  }
  const bool answered = *record != nullptr && (*record)->finished.has_value();
  if (!answered) {
    if (Reserve(*call, lease)) Submit(call, std::move(lease), *record);
    return;
  }
  CheckReplay(*call, **record);
  LetGo(*call, std::move(lease));
  call->finished = (*record)->finished;
  call->phase = Call::Phase::kEnded;
}

// Room for what the turn may give its session. False: there is none.
bool World::Reserve(Call& call, SessionLease& lease) {
  const Request& asked = call.request;
  int64_t tokens = 0;
  if (asked.kind != TurnKind::kScore) {
    tokens = static_cast<int64_t>(asked.input.size());
  }
  if (asked.kind == TurnKind::kGenerate) tokens += asked.max_tokens;
  const bool over = tokens > lease.room();
  const int64_t held = lease.position();
  // Before others can come in between: they do once it has unlocked.
  const bool has_quota = HasQuota(*call.session, held, held + tokens);
  call.reserved = held + tokens;
  const absl::Status status = lease.Reserve(tokens);
  if (over != (Outcome(status) == "INVALID_ARGUMENT OVER_LIMIT")) {
    Diverge("call ", call.id, " wants ", tokens, " ids: ", Outcome(status));
  }
  if (status.ok()) return true;
  call.reserved.reset();
  if (over) {
    faults.Fired(Fault::kSessionTooLong);
  } else if (Outcome(status) == "RESOURCE_EXHAUSTED QUOTA") {
    faults.Fired(Fault::kKeepsTooMuch);
    if (has_quota) {
      Diverge("call ", call.id, " has no quota for ", tokens, " more ids");
    }
  } else {
    faults.Fired(Fault::kIdsFull);
    if (!odds.few_ids) Diverge("no room for ids");
  }
  LetGo(call, std::move(lease));
  Refused(call, status);
  return false;
}

// Sessions without a token make room, the youngest excepted.
void World::CheckNoRoom(int64_t most_sessions) {
  if (odds.few_ids) return;
  if (most_sessions < odds.store.max_sessions) Diverge("no room for a turn");
  for (const auto& [name, session] : model.named()) {
    if (session->holder == nullptr && session->ids.empty() &&
        session->used_before + odds.store.empty_grace <= Now()) {
      Diverge("'", name, "' keeps a turn out");
    }
  }
}

void World::CheckRecord(
    Call& call,
    const absl::StatusOr<std::shared_ptr<const TurnRecord>>& record) {
  const ModelSession& session = *call.session;
  const Found found = model.Lookup(session, call.request.identity);
  const std::string outcome = Outcome(record.status());
  if (outcome == "ABORTED REPLAY_EVICTED") {
    if (found == Found::kEarlier) return faults.Fired(Fault::kLateRetry);
    faults.Fired(Fault::kReplayEvicted);
    if (!odds.few_records || found == Found::kNew) Diverge("a record is lost");
    return;
  }
  if (outcome == "INVALID_ARGUMENT FIELD_INVALID") {
    faults.Fired(Fault::kOtherRequest);
    if (found != Found::kOtherRequest)
      Diverge("call ", call.id, " is no other");
    return;
  }
  if (!record.ok()) return Diverge("a record's error is ", outcome);
  if (*record == nullptr) {
    if (found != Found::kNew) Diverge("call ", call.id, " runs again");
    return;
  }
  const bool finished = (*record)->finished.has_value();
  faults.Fired(finished ? Fault::kRetryOfFinished : Fault::kRetryOfBroken);
  if (found == Found::kBrokenOrFinished) {
    session.last->must_finish = finished;
  } else if (found != (finished ? Found::kFinished : Found::kBroken)) {
    Diverge("call ", call.id, " finds a record that is not its own");
  }
}

// What an answered call hears again is what it heard.
void World::CheckReplay(Call& call, const TurnRecord& record) {
  const Call& first = *call.session->last;
  bool same = record.tokens.size() == first.tokens.size() &&
              record.scored.size() == first.scored.size() &&
              record.seed == first.turn_seed;
  for (size_t i = 0; same && i < record.tokens.size(); ++i) {
    same = SameEvent(record.tokens[i], first.tokens[i]);
  }
  for (size_t i = 0; same && i < record.scored.size(); ++i) {
    same = record.scored[i].token_id == first.scored[i].token_id &&
           record.scored[i].logprob == first.scored[i].logprob;
  }
  if (same && first.finished.has_value()) {
    same = record.finished->position == first.finished->position &&
           record.finished->reason == first.finished->reason;
  }
  if (!same) Diverge("call ", call.id, " hears other events than at first");
}

void World::Submit(const std::shared_ptr<Call>& call, SessionLease lease,
                   std::shared_ptr<const TurnRecord> record) {
  const Request& asked = call->request;
  Turn turn;
  turn.kind = asked.kind;
  turn.sampling.seed = call->seed;
  turn.sampling.min_tokens = asked.min_tokens;
  call->context = call->before;
  if (record == nullptr) {
    turn.input = asked.input;
    call->context.insert(call->context.end(), asked.input.begin(),
                         asked.input.end());
  } else {
    // The session holds the input and the tokens so far.
    const Call& first = *call->session->last;
    call->before = first.before;
    call->resumed = static_cast<int64_t>(first.tokens.size());
    call->resumes = call->session->last;
    turn.sampling.seed = record->seed;
    if (record->seed != first.turn_seed) Diverge("another random seed");
  }
  call->turn_seed = turn.sampling.seed;
  turn.resumed = std::move(record);
  keys.push_back(lease.key());
  turn.lease = std::move(lease);
  turn.stop.max_tokens = asked.max_tokens;
  turn.stop.stop_token_ids = asked.stop_ids;
  turn.stop.end_token_ids = asked.end_ids;
  turn.top_logprobs = asked.top_logprobs;
  turn.return_scored = asked.return_scored;
  turn.identity = asked.identity;
  turn.deadline = call->deadline;
  turn.account = call->account;
  turn.prefix_tenant = call->account == nullptr ? "" : call->account->name();
  turn.priority = call->priority;
  turn.sink = call;
  turn.cancel = call->cancel;
  call->phase = Call::Phase::kSubmitted;
  call->submitted = Now();
  if (scheduler == nullptr) {
    LetGo(*call, std::move(turn.lease));
    return Refused(*call, absl::CancelledError());
  }
  absl::Status status;
  {
    const Within within(this);
    status = scheduler->Submit(std::move(turn));
  }
  if (status.ok()) return;
  CheckRefusal(*call, Outcome(status));
  if (!call->released) {
    model.Released(*call, call->session->ids, within_since(), Now());
  }
  Refused(*call, status);
}

// Why the scheduler may not take a turn.
void World::CheckRefusal(Call& call, const std::string& outcome) {
  if (call.started.has_value() || call.phase == Call::Phase::kEnded) {
    Diverge("call ", call.id, " was refused and heard more");
  }
  if (outcome == "UNAVAILABLE DRAINING" && draining) return;
  if (outcome == "INVALID_ARGUMENT FIELD_INVALID" && call.context.empty()) {
    return;
  }
  if (outcome == "RESOURCE_EXHAUSTED QUOTA") return CheckOverQuota(call);
  if (outcome == "DEADLINE_EXCEEDED DEADLINE_UNREACHABLE" &&
      call.deadline.has_value()) {
    return faults.Fired(Fault::kDeadlineUnreachable);
  }
  if (outcome != "RESOURCE_EXHAUSTED QUEUE_FULL") {
    return Diverge("call ", call.id, " is refused with ", outcome);
  }
  faults.Fired(Fault::kQueueFull);
  int64_t waiting = 0;
  int64_t tokens = static_cast<int64_t>(call.request.input.size());
  for (const auto& other : calls) {
    if (other->phase != Call::Phase::kSubmitted || other->started.has_value() ||
        other.get() == &call) {
      continue;
    }
    ++waiting;
    tokens += static_cast<int64_t>(other->request.input.size());
  }
  if (waiting < odds.scheduler.max_queued_calls &&
      tokens <= odds.scheduler.max_queued_tokens) {
    Diverge("the queue is full with ", waiting, " calls");
  }
}

void World::LetGo(Call& call, SessionLease lease) {
  call.letting_go = true;
  {
    const Within within(this);
    lease.Release();
  }
  call.letting_go = false;
  if (!call.released) {
    model.Released(call, call.session->ids, within_since(), Now());
  }
}

void World::Refused(Call& call, const absl::Status& status) {
  Note("call ", call.id, " is refused: ", Outcome(status));
  if (Outcome(status) == "ABORTED SESSION_BUSY") {
    faults.Fired(Fault::kSessionBusy);
  }
  call.failed = status;
  call.phase = Call::Phase::kEnded;
}

}  // namespace txl::simulation
