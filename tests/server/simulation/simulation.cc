#include "tests/server/simulation/simulation.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "tests/server/simulation/operations.h"
#include "tests/server/simulation/world.h"

namespace txl::simulation {
namespace {

constexpr int kRestTurns = 5000;  // far more than any work that is left
// A tenant that may have three tokens a minute has one by then.
constexpr absl::Duration kRefill = absl::Seconds(20);
constexpr int kTraceLines = 60;

void RunEvents(World& world, int count) {
  for (int i = 0; i < count && !world.diverged(); ++i) {
    RunOperation(world, /*interleaved=*/false);
    world.CheckInvariants();
  }
}

// Everybody reads, nothing new goes wrong, until nothing is left to do.
void ComeToRest(World& world) {
  world.mended = true;
  world.runner.Mend();
  for (int i = 0; !world.diverged(); ++i) {
    if (i == kRestTurns) return world.Diverge("it does not come to rest");
    world.RunTask();
    for (const auto& call : world.calls) {
      call->reader.set_kind(ReaderKind::kFast);
      call->reader.Read(world.Now(), world.random);
    }
    world.runner.AllArrive();
    if (world.RunScheduler() || world.has_tasks()) continue;
    // A turn that comes back waits until another session is old enough to move.
    // A turn whose tenant has no tokens left waits until it has.
    const absl::Duration min_idle =
        std::max(world.odds.scheduler.min_idle,
                 world.accounts.empty() ? absl::ZeroDuration() : kRefill);
    if (world.scheduler->Idle() || min_idle == absl::ZeroDuration()) break;
    PassTime(world, min_idle);
  }
  world.CheckAtRest();
}

// Every session goes on as if nothing had been.
void GoOn(World& world) {
  PassTime(world, world.odds.scheduler.min_idle);
  world.Expire();
  std::vector<std::string> names;
  for (const auto& [name, session] : world.model.named()) names.push_back(name);
  for (const std::string& name : names) {
    SendHealthy(world, name);
    ComeToRest(world);
    const absl::Status& failed = world.calls.back()->failed;
    const bool may_fail =
        world.odds.scheduler.min_idle > absl::ZeroDuration() ||
        world.odds.scarce() || world.odds.keeps.bytes.has_value() ||
        world.odds.store.max_session_tokens < 1000;
    if (!failed.ok() && !may_fail) {
      world.Diverge("'", name, "' is ill afterwards: ", failed.ToString());
    }
  }
}

void EndSessions(World& world) {
  world.Expire();
  while (!world.model.named().empty() && !world.diverged()) {
    DeleteSession(world, world.model.named().begin()->first);
  }
  if (world.scheduler != nullptr) world.RunScheduler();
  world.CheckEmpty();
}

void Drain(World& world) {
  world.Note("the server drains");
  world.faults.Fired(Fault::kDrain);
  world.draining = true;
  world.scheduler->StartDrain();
  RunEvents(world, static_cast<int>(world.random.Below(20)));
  world.Note("all turns are to end");
  world.faults.Fired(Fault::kEndAll);
  world.end_all = true;
  world.scheduler->EndAll();
  // Whoever reads or does not, every turn ends with the steps in flight.
  const int steps = 2 * world.odds.runner.depth + 2;
  for (int i = 0; i < steps; ++i) world.RunScheduler();
  for (const auto& call : world.calls) {
    if (call->phase == Call::Phase::kSubmitted) {
      world.Diverge("the drain does not end");
    }
  }
}

void EndScheduler(World& world) {
  if (!world.scheduler->Idle()) world.faults.Fired(Fault::kSchedulerEnds);
  world.EndScheduler();
  while (world.has_tasks() && !world.diverged()) world.RunTask();
  world.CheckAtRest();
}

void Live(World& world) {
  RunEvents(world, world.odds.events);
  if (world.diverged()) return;
  switch (world.odds.ending) {
    case Ending::kAtRest:
      ComeToRest(world);
      if (!world.diverged()) GoOn(world);
      break;
    case Ending::kDrain:
      Drain(world);
      if (!world.diverged()) ComeToRest(world);
      break;
    case Ending::kSchedulerEnds:
      EndScheduler(world);
      break;
  }
  if (!world.diverged()) EndSessions(world);
}

}  // namespace

SeedResult RunSeed(uint64_t seed, bool tracing) {
  World world(seed, tracing, [](World& during) {
    RunOperation(during, /*interleaved=*/true);
  });
  Live(world);
  return {world.divergence, std::move(world.trace), world.faults};
}

SeedsResult RunSeeds(uint64_t first, int64_t count) {
  SeedsResult result;
  while (result.run < count) {
    const uint64_t seed = first + static_cast<uint64_t>(result.run);
    const SeedResult one = RunSeed(seed, /*tracing=*/false);
    ++result.run;
    result.faults.Add(one.faults);
    if (one.divergence.empty()) continue;
    result.diverging_seed = seed;
    std::vector<std::string> trace = RunSeed(seed, /*tracing=*/true).trace;
    const auto lines = static_cast<int64_t>(trace.size());
    trace.erase(trace.begin(),
                trace.begin() + std::max<int64_t>(lines - kTraceLines, 0));
    result.divergence = absl::StrCat("seed ", seed, ": ", one.divergence, "\n",
                                     absl::StrJoin(trace, "\n"));
    break;
  }
  return result;
}

}  // namespace txl::simulation
