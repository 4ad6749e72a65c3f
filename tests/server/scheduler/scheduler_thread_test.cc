// The scheduler with its own thread, clients on others: for the race detector.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

WorldOptions Threaded() {
  WorldOptions options;
  options.thread = true;
  options.clock = Clock::Real();
  return options;
}

// Submits, waits for the end, returns it.
TestTurn RunToEnd(World& world, const std::string& session, Ids input,
                  int tokens, bool cancel) {
  auto lease = world.store->Acquire(SessionName::OfDefaultTenant(session));
  TestTurn test{std::make_shared<RecordingSink>(),
                std::make_shared<CancelToken>(), lease.status()};
  if (!lease.ok()) return test;
  absl::Notification ended;
  test.sink->AtEnd([&] { ended.Notify(); });
  Turn turn{.kind = TurnKind::kGenerate,
            .lease = *std::move(lease),
            .input = std::move(input),
            .sampling = {},
            .stop = {},
            .identity = {},
            .resumed = nullptr,
            .deadline = std::nullopt,
            .sink = test.sink,
            .cancel = test.cancel};
  turn.stop.max_tokens = tokens;
  test.submitted = world.scheduler->Submit(std::move(turn));
  if (!test.submitted.ok()) return test;
  if (cancel) {
    test.cancel->Cancel(CancelToken::Why::kCancelled);
    world.scheduler->Wake();
  }
  ended.WaitForNotification();
  return test;
}

// The example of scheduler.h.
TEST(SchedulerThread, TheHeadersExampleRunsATurnAndDrains) {
  Metrics metrics;
  FakeStepRunner runner;
  SessionStore store({}, Clock::Real());
  Scheduler scheduler({}, &runner, &store, &metrics, Clock::Real());
  ASSERT_TRUE(store.Create("verona", std::nullopt).ok());
  const auto sink = std::make_shared<RecordingSink>();
  const auto cancel = std::make_shared<CancelToken>();
  absl::Notification ended;
  sink->AtEnd([&] { ended.Notify(); });

  Turn turn;
  turn.lease = *store.Acquire("verona");
  turn.input = {4, 8, 15};
  turn.stop.max_tokens = 16;
  turn.sink = sink;
  turn.cancel = cancel;
  const absl::Status status = scheduler.Submit(std::move(turn));
  ASSERT_TRUE(status.ok()) << status;
  ended.WaitForNotification();
  EXPECT_EQ(sink->ids(), runner.Continue({4, 8, 15}, 16));

  scheduler.StartDrain();
  scheduler.EndAll();
  while (!scheduler.Idle()) absl::SleepFor(absl::Milliseconds(1));
  Turn late;
  late.lease = *store.Acquire("verona");
  late.sink = sink;
  EXPECT_EQ(Outcome(scheduler.Submit(std::move(late))), "UNAVAILABLE DRAINING");
}

TEST(SchedulerThread, ClientsOnManyThreadsGetTheirOwnText) {
  World world(Threaded());
  std::vector<std::thread> clients;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&world, &wrong, c] {
      const std::string id = absl::StrCat("s", c);
      if (!world.store->Create(SessionName::OfDefaultTenant(id), std::nullopt)
               .ok())
        ++wrong;
      for (int turn = 0; turn < 12; ++turn) {
        Ids ids = world.TokensOf(id);
        const Ids prompt = World::SomeIds(1 + (turn * 7 + c * 5) % 40, c);
        const bool cancel = turn % 3 == 2;
        const TestTurn test = RunToEnd(world, id, prompt, 9, cancel);
        ids.insert(ids.end(), prompt.begin(), prompt.end());
        const Ids expected = world.runner->Continue(ids, 9);
        const Ids got = test.sink->ids();
        if (!cancel && got != expected) ++wrong;
        if (!std::equal(got.begin(), got.end(), expected.begin())) ++wrong;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
  world.scheduler = nullptr;  // waits for the loop
  EXPECT_EQ(world.runner->violations(), std::vector<std::string>());
  const Snapshot s = world.metrics.Get();
  EXPECT_EQ(s.turns_started, 8 * 12);
  EXPECT_EQ(s.turns_active, 0);
  EXPECT_EQ(s.rows_run, s.tokens_fed + s.rows_discarded);
}

TEST(SchedulerThread, DeletingAndEndingRaceWithTurns) {
  World world(Threaded());
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&world, c] {
      for (int turn = 0; turn < 20; ++turn) {
        const std::string id = absl::StrCat("s", c, "-", turn);
        if (!world.store->Create(SessionName::OfDefaultTenant(id), std::nullopt)
                 .ok())
          return;
        std::thread deleter([&] {
          (void)world.store->Delete(SessionName::OfDefaultTenant(id));
        });
        RunToEnd(world, id, World::SomeIds(30), 50, false);
        deleter.join();
      }
    });
  }
  world.scheduler->StallTime();
  for (std::thread& client : clients) client.join();
  world.scheduler->StartDrain();
  world.scheduler->EndAll();
  world.scheduler = nullptr;
  EXPECT_EQ(world.store->counts().busy, 0);
  EXPECT_EQ(world.store->counts().idle, 0);
  EXPECT_EQ(world.metrics.Get().turns_active, 0);
}

TEST(SchedulerThread, AHeldDeviceShowsAsAStallAndNothingIsLost) {
  World world(Threaded());
  world.CreateSession("a");
  world.runner->Hold();
  std::thread client([&] { RunToEnd(world, "a", {1, 2}, 5, false); });
  while (world.runner->plans().empty() ||
         world.scheduler->StallTime() == absl::ZeroDuration()) {
    std::this_thread::yield();
  }
  world.runner->Release();
  client.join();
  EXPECT_EQ(world.store->Get("a")->position, 7);
  world.scheduler = nullptr;
}

}  // namespace
}  // namespace txl
