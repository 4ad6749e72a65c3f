#include "tests/server/simulation/world.h"

#include <algorithm>
#include <utility>

#include "server/base/error.h"

namespace txl::simulation {

std::string Outcome(const absl::Status& status) {
  if (status.ok()) return "OK";
  return absl::StrCat(absl::StatusCodeToString(status.code()), " ",
                      GetErrorDetails(status).reason);
}

Ids IdsOf(const SessionLease& lease) {
  return lease.token_ids().Last(lease.position());
}

World::Within::Within(World* world) : world_(world) {
  if (world->depth_++ == 0) world->within_since_ = world->Now();
}

World::World(uint64_t seed, bool keep_trace,
             std::function<void(World&)> meanwhile)
    : random(seed),
      odds(DrawOdds(random)),
      runner(odds, &random, &faults),
      model(odds, &runner.model()),
      store(std::make_unique<SessionStore>(odds.store, &clock)),
      scheduler(std::make_unique<Scheduler>(odds.scheduler, &runner,
                                            store.get(), &metrics, &clock,
                                            /*start_thread=*/false)),
      tracing(keep_trace),
      meanwhile_(std::move(meanwhile)),
      interleaving_([this] { AtPoint(Fault::kInterleavedAtMutex); }) {
  begin_ = Now();
  if (!odds.tenants.empty()) metrics.AddTenant("other");
  for (const TenantLimits& limits : odds.tenants) {
    const std::string name = absl::StrCat("t", accounts.size());
    accounts.push_back(std::make_unique<TenantAccount>(
        name, limits, metrics.AddTenant(name), begin_));
  }
  DrawNextPoint();
}

World::~World() {
  scheduler = nullptr;
  tasks_.clear();
  // Calls and sessions hold each other.
  for (const auto& call : calls) {
    if (call->session != nullptr) call->session->last = nullptr;
    call->session = nullptr;
    call->waits_for = nullptr;
    call->resumes = nullptr;
  }
}

void World::AtPoint(Fault where) {
  if (depth_ == 0 || mended || diverged()) return;
  if (odds.faults.interleaved == 0 || --points_left_ > 0) return;
  DrawNextPoint();
  Interleaving::Alone alone;
  if (!alone.first()) return;
  faults.Fired(where);
  Note("meanwhile, ", FaultName(where), ":");
  meanwhile_(*this);
  Note("... until here");
}

void World::DrawNextPoint() {
  if (odds.faults.interleaved == 0) return;
  points_left_ =
      1 + random.Below(static_cast<int64_t>(2 / odds.faults.interleaved));
}

bool World::RunScheduler() {
  runner.SomeArrive();
  MarkDue();
  bool busy = false;
  {
    const Within within(this);
    busy = scheduler->RunOnce(absl::ZeroDuration());
  }
  for (const auto& call : calls) {
    if (call->phase == Call::Phase::kEnded) continue;
    if (call->released) Diverge("call ", call->id, " heard nothing of its end");
    // Another call may push a waiting one out of the queue meanwhile: then the
    // next turn tells it.
    const bool has_time = !call->started.has_value() && !call->was_due;
    if (call->must_end && !has_time) Diverge("call ", call->id, " goes on");
  }
  return busy;
}

void World::EndScheduler() {
  Note("the scheduler ends");
  draining = true;
  {
    const Within within(this);
    scheduler = nullptr;
  }
  for (const auto& call : calls) {
    if (call->phase == Call::Phase::kSubmitted) {
      Diverge("call ", call->id, " outlives the scheduler");
    }
  }
}

void World::Expire() {
  const absl::Duration now = Now();
  for (const SessionPtr& session : model.MayHaveEnded(now)) {
    const std::string outcome = Outcome(
        store->Get(SessionName::OfDefaultTenant(session->name)).status());
    const bool due = session->used_before + session->ttl <= now;
    if (outcome == "OK") {
      if (due) Diverge("'", session->name, "' outlives its time");
      continue;
    }
    Note("'", session->name, "' ends: ", outcome);
    const bool may_be_due = session->used_after + session->ttl <= now;
    const bool may_be_evicted = odds.scarce() && session->ids.empty();
    model.Ended(session, outcome);
    if (outcome == "NOT_FOUND SESSION_EXPIRED" && may_be_due) {
      faults.Fired(Fault::kSessionExpires);
    } else if (outcome == "NOT_FOUND SESSION_EVICTED" && may_be_evicted) {
      faults.Fired(Fault::kSessionEvicted);
    } else if (model.WhyNot(session->name).count(outcome) == 0 ||
               outcome != "NOT_FOUND SESSION_UNKNOWN") {
      Diverge("'", session->name, "' ends with ", outcome);
    }
  }
}

}  // namespace txl::simulation
