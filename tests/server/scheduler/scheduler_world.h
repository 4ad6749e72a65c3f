#pragma once

// A scheduler with a fake device, a fake clock and a real session store, and
// what tests do with it.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/turn.h"
#include "server/session/session_store.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_step_runner.h"
#include "tests/fakes/recording_sink.h"

namespace txl {

using Ids = std::vector<int32_t>;

struct WorldOptions {
  FakeStepRunnerOptions runner;
  SchedulerOptions scheduler;
  SessionStoreOptions store;
  bool thread = false;
  Clock* clock = nullptr;  // null: the fake one
};

WorldOptions OneSlot();

// A turn of a test: what it is, and where its results go.
struct TestTurn {
  std::shared_ptr<RecordingSink> sink;
  std::shared_ptr<CancelToken> cancel;
  absl::Status submitted;
};

class World {
 public:
  explicit World(WorldOptions options = {});

  // `count` distinct-looking ids of the fake vocabulary.
  static Ids SomeIds(int count, int salt = 0);

  void CreateSession(const std::string& id);
  // Acquires and submits; empty session: a temporary one. `change` may edit
  // the turn before.
  TestTurn Submit(const std::string& session, TurnKind kind, Ids input,
                  const std::function<void(Turn&)>& change = nullptr);
  TestTurn Generate(const std::string& session, Ids input, int max_tokens,
                    const std::function<void(Turn&)>& change = nullptr);
  // One iteration of the loop; all until nothing moves.
  bool Step() { return scheduler->RunOnce(absl::ZeroDuration()); }
  void Run();

  Ids TokensOf(const std::string& session) const;
  // A turn of `count` tokens gives what the model gives after the session's
  // ids: its rows are right.
  void ExpectHealthy(const std::string& session, int count = 3);
  // Everything is at rest: the laws hold, nothing of any turn is left.
  void ExpectAtRest();

  FakeClock fake_clock;
  Metrics metrics;
  std::unique_ptr<FakeStepRunner> runner;
  std::unique_ptr<SessionStore> store;
  std::unique_ptr<Scheduler> scheduler;

 private:
  std::vector<std::shared_ptr<RecordingSink>> sinks_;
};

// Sessions of `count` tokens each, named s0, s1, ...
void Fill(World& world, int sessions, int count);

// 64 turns of up to `longest` tokens, begun a few steps apart: each gives what
// it gives alone.
void ExpectStaggeredTurns(World& world, int longest);

// "CODE REASON" of a status; "OK".
std::string Outcome(const absl::Status& status);

}  // namespace txl
