#include "tests/server/simulation/operations.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace txl::simulation {
namespace {

std::string AnyName(World& world) {
  // Where a lease is about to change hands, most can go wrong.
  if (world.random.Chance(0.3)) {
    for (const auto& [name, session] : world.model.named()) {
      if (session->waiter != nullptr) return name;
    }
  }
  return absl::StrCat("s", world.random.Below(world.odds.sessions));
}

Ids SomeIds(World& world, int64_t count) {
  Ids ids;
  for (int64_t i = 0; i < count; ++i) {
    ids.push_back(
        static_cast<int32_t>(world.random.Below(world.odds.runner.vocab_size)));
  }
  return ids;
}

// What prompts of several clients begin with: one of two texts, or a part.
Ids AlikeIds(World& world, const Ids& end) {
  Random& random = world.random;
  const int32_t salt = static_cast<int32_t>(random.Below(2));
  Ids ids;
  for (int64_t i = random.Between(1, 14); i > 0; --i) {
    const auto place = static_cast<int64_t>(ids.size());
    ids.push_back(static_cast<int32_t>((3 * place + salt * place * place + 1) %
                                       world.odds.runner.vocab_size));
  }
  if (random.Chance(0.7)) ids.insert(ids.end(), end.begin(), end.end());
  return ids;
}

// Null: there is none.
std::shared_ptr<Call> AnyCall(World& world) {
  if (world.calls.empty()) return nullptr;
  return world.random.Pick(world.calls);
}

void CreateSession(World& world) {
  const std::string name = AnyName(world);
  std::optional<absl::Duration> ttl;
  if (world.random.Chance(0.4)) {
    ttl = absl::Milliseconds(world.random.Between(1000, 9000));
  }
  if (world.random.Chance(0.05)) ttl = -absl::Seconds(1);
  world.Expire();
  std::string expected = "OK";
  const bool invalid = ttl.has_value() && *ttl < absl::ZeroDuration();
  if (invalid) {
    expected = "INVALID_ARGUMENT FIELD_INVALID";
  } else if (world.model.Find(name) != nullptr) {
    expected = "ALREADY_EXISTS SESSION_EXISTS";
  }
  const SessionStoreOptions& store = world.odds.store;
  const auto kept = static_cast<int64_t>(
      static_cast<double>(store.max_sessions) * store.temporary_reserve);
  const bool may_not =
      world.odds.few_ids || world.MostSessions() >= store.max_sessions - kept;
  const bool may_keep = world.MayKeep(1, world.BytesOf(0));
  const std::string outcome = Outcome(
      world.store->Create(SessionName::OfDefaultTenant(name), ttl).status());
  world.Note("create '", name, "': ", outcome);
  if (outcome == "RESOURCE_EXHAUSTED QUOTA") {
    world.faults.Fired(Fault::kKeepsTooMuch);
    if (may_keep || expected != "OK")
      world.Diverge("no quota for '", name, "'");
    return;
  }
  if (outcome == "RESOURCE_EXHAUSTED NO_SESSION_MEMORY") {
    world.faults.Fired(Fault::kSessionsFull);
    if (!may_not || expected != "OK") world.Diverge("no room for '", name, "'");
    return;
  }
  if (outcome != expected) {
    return world.Diverge("create '", name, "': ", outcome);
  }
  if (outcome != "OK") return;
  for (const auto& call : world.calls) {
    if (call->active() && call->session->deleted &&
        call->session->name == name) {
      world.faults.Fired(Fault::kRecreatedInTurn);
    }
  }
  world.model.Create(name, ttl.value_or(world.odds.store.default_ttl),
                     world.Now());
}

void LookAtSession(World& world) {
  const std::string name = AnyName(world);
  world.Expire();
  const SessionPtr session = world.model.Find(name);
  const absl::StatusOr<SessionInfo> info =
      world.store->Get(SessionName::OfDefaultTenant(name));
  if (session == nullptr) {
    if (world.model.WhyNot(name).count(Outcome(info.status())) == 0) {
      world.Diverge("get '", name, "': ", Outcome(info.status()));
    }
    return;
  }
  if (!info.ok()) return world.Diverge("'", name, "' is not there");
  const bool busy = info->state == SessionState::kBusy;
  const bool may_be_idle = session->holder == nullptr ||
                           (world.within() && session->holder->MayLetGo());
  if (busy ? session->holder == nullptr : !may_be_idle) {
    world.Diverge("'", name, "' is ", busy ? "busy" : "idle");
  }
}

// The sessions may have ended, may be running, or may be in no slot.
void SaveStates(World& world) {
  if (world.keys.empty() || world.scheduler == nullptr) return;
  std::vector<uint64_t> due;
  for (int64_t i = world.random.Between(1, 3); i > 0; --i) {
    const auto back = static_cast<size_t>(
        world.random.Below(std::min<int64_t>(8, std::ssize(world.keys))));
    due.push_back(world.keys[world.keys.size() - 1 - back]);
  }
  world.Note("states are to be saved");
  world.scheduler->SaveStates(due);
}

void RemoveSession(World& world) { DeleteSession(world, AnyName(world)); }

Request NewRequest(World& world, TurnKind kind) {
  Random& random = world.random;
  Request request;
  if (random.Chance(world.odds.prefixes ? 0.5 : 0.9)) {
    request.session = AnyName(world);
  }
  request.kind = kind;
  // Now and then more than the ring has to spare, or than one step takes.
  request.input =
      SomeIds(world, random.Between(1, random.Chance(0.2) ? 20 : 5));
  if (world.odds.prefixes && random.Chance(0.7)) {
    request.input = AlikeIds(world, request.input);
  }
  request.top_logprobs = static_cast<int>(random.Below(3));
  if (!request.session.empty() && random.Chance(0.6)) {
    const auto number = world.calls.size();
    request.identity = {absl::StrCat("r", number), absl::StrCat("d", number)};
  }
  return request;
}

void Generate(World& world) {
  Random& random = world.random;
  Request request = NewRequest(world, TurnKind::kGenerate);
  if (random.Chance(0.3)) request.input.clear();
  request.max_tokens = static_cast<int>(random.Between(1, 12));
  if (random.Chance(0.3)) request.stop_ids = SomeIds(world, 1);
  if (random.Chance(0.3)) request.end_ids = SomeIds(world, 1);
  if (random.Chance(0.3)) {
    request.min_tokens =
        static_cast<int>(random.Between(0, request.max_tokens));
  }
  world.Send(std::move(request));
}

void Append(World& world) {
  Request request = NewRequest(world, TurnKind::kAppend);
  request.return_scored = world.random.Chance(0.3);
  world.Send(std::move(request));
}

void Score(World& world) {
  Request request = NewRequest(world, TurnKind::kScore);
  request.identity = {};
  world.Send(std::move(request));
}

// The same request again: of a call that runs, broke off, ended or was refused.
void Retry(World& world) {
  for (int tries = 0; tries < 4; ++tries) {
    const auto call = AnyCall(world);
    if (call == nullptr || !call->named()) continue;
    return world.Send(call->request);
  }
}

// Another request under an id that was given away.
void SendOtherRequest(World& world) {
  const auto call = AnyCall(world);
  if (call == nullptr || !call->named()) return;
  Request request = NewRequest(world, TurnKind::kGenerate);
  request.session = call->request.session;
  request.identity = {call->request.identity.request_id,
                      absl::StrCat("d", world.calls.size())};
  request.max_tokens = 3;
  const SessionPtr session = world.model.Find(request.session);
  if (session != nullptr && session->holder == call.get()) {
    world.faults.Fired(Fault::kOtherWhileItRuns);
  }
  world.Send(std::move(request));
}

void CancelCall(World& world) {
  const auto call = AnyCall(world);
  if (call == nullptr || call->phase == Call::Phase::kEnded) return;
  world.Note("call ", call->id, " is cancelled");
  call->cancel->Cancel(world.random.Chance(0.7) ? CancelToken::Why::kCancelled
                                                : CancelToken::Why::kDeadline,
                       world.Now());
}

void ReadStreams(World& world) {
  for (const auto& call : world.calls) {
    if (call->phase == Call::Phase::kEnded) continue;
    if (world.random.Chance(0.02)) {
      call->reader.set_kind(ReaderKind::kStopped);
      world.faults.Fired(Fault::kReaderStops);
    }
    const int unread = call->reader.unsent();
    call->reader.Read(world.Now(), world.random);
    if (call->reader.unsent() < unread) {
      world.Note("call ", call->id, " has read ",
                 unread - call->reader.unsent(), " of ", unread, " events");
    }
  }
}

void PassShortTime(World& world) {
  PassTime(world, absl::Milliseconds(world.random.Below(900)));
}

void PassLongTime(World& world) {
  PassTime(world, absl::Milliseconds(world.random.Between(900, 9000)));
  if (world.random.Chance(0.1)) PassTime(world, absl::Hours(1));
}

// Nothing depends on the wall clock.
void ChangeWallClock(World& world) {
  static const std::vector<absl::Duration> jumps = {
      absl::Hours(1), absl::Hours(24), absl::Hours(24 * 365)};
  if (world.random.Chance(0.3)) {
    world.wall_clock_stands = !world.wall_clock_stands;
    world.faults.Fired(Fault::kWallClockStands);
    return;
  }
  const absl::Duration jump = world.random.Pick(jumps);
  world.Note("the wall clock jumps");
  world.clock.SetNow(world.clock.Now() +
                     (world.random.Chance(0.5) ? jump : -jump));
  world.faults.Fired(Fault::kWallClockJumps);
}

void RunSome(World& world) {
  const int64_t count = world.random.Between(1, 4);
  for (int64_t i = 0; i < count && world.scheduler != nullptr; ++i) {
    world.RunScheduler();
  }
}

struct Operation {
  int weight;
  void (*run)(World&);
};

std::vector<Operation> Operations(const World& world, bool interleaved) {
  const OperationWeights& w = world.odds.weights;
  std::vector<Operation> all = {
      {w.create, CreateSession},
      {w.look, LookAtSession},
      {w.remove, RemoveSession},
      {w.generate, Generate},
      {w.append, Append},
      {w.score, Score},
      {w.save, SaveStates},
      {w.retry, Retry},
      {w.other_request, SendOtherRequest},
      {w.cancel, CancelCall},
      {w.read, ReadStreams},
      {w.wall_clock, ChangeWallClock},
      {4, [](World& each) { each.RunTask(); }},
  };
  if (interleaved) return all;
  all.push_back({w.run, RunSome});
  all.push_back({w.time_passes, PassShortTime});
  all.push_back({w.long_time_passes, PassLongTime});
  return all;
}

}  // namespace

void RunOperation(World& world, bool interleaved) {
  const std::vector<Operation> operations = Operations(world, interleaved);
  int total = 0;
  for (const Operation& operation : operations) total += operation.weight;
  int64_t drawn = world.random.Below(total);
  for (const Operation& operation : operations) {
    drawn -= operation.weight;
    if (drawn < 0) return operation.run(world);
  }
}

void SendHealthy(World& world, const std::string& session) {
  Request request;
  request.session = session;
  const SessionPtr found = world.model.Find(session);
  if (found == nullptr || found->ids.empty()) request.input = {1, 2};
  request.max_tokens = 2;
  world.Send(std::move(request));
}

void DeleteSession(World& world, const std::string& name) {
  world.Expire();
  const SessionPtr session = world.model.Find(name);
  const Outcomes may =
      session == nullptr ? world.model.WhyNot(name) : Outcomes{"OK"};
  const std::string outcome =
      Outcome(world.store->Delete(SessionName::OfDefaultTenant(name)));
  world.Note("delete '", name, "': ", outcome);
  if (may.count(outcome) == 0) {
    return world.Diverge("delete '", name, "': ", outcome);
  }
  if (session == nullptr) return;
  if (session->holder == nullptr) world.faults.Fired(Fault::kDeletedIdle);
  world.model.Delete(session);
}

void PassTime(World& world, absl::Duration by) {
  const absl::Time before = world.clock.Now();
  world.clock.Advance(by);
  if (world.wall_clock_stands) world.clock.SetNow(before);
  world.Note("time passes: ", absl::FormatDuration(by));
}

}  // namespace txl::simulation
