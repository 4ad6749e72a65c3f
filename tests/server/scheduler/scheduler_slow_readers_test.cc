// Readers that lag keep nobody from a slot, and lose nothing but time.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

using ::testing::Contains;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int kParkEvents = 8;

WorldOptions Slots(int slots) {
  WorldOptions options;
  options.runner.slots = slots;
  options.runner.max_rows = 512;
  options.scheduler.park_events = kParkEvents;
  options.store.max_sessions = 2000;
  return options;
}

// A stream whose reader has stopped, up to its being parked.
TestTurn Stuck(World& world, const std::string& session, int tokens = 40) {
  const TestTurn turn = world.Generate(session, {1, 2}, tokens);
  turn.sink->StopReading();
  world.Run();
  EXPECT_EQ(turn.sink->Unsent(), kParkEvents);
  return turn;
}

TEST(SchedulerSlowReaders, AParkedTurnGivesItsSlotToOneThatWaits) {
  World world(Slots(1));
  const TestTurn stuck = Stuck(world, "");
  const TestTurn other = world.Generate("", {5}, 30);
  world.Run();
  EXPECT_EQ(other.sink->ids(), world.runner->Continue({5}, 30));
  EXPECT_FALSE(stuck.sink->ended());
  EXPECT_EQ(world.metrics.Get().turns_parked, 1);
  EXPECT_EQ(world.metrics.Get().turns_parked_out, 1);
  EXPECT_EQ(world.metrics.Get().parked_moves, 1);
  stuck.sink->GoOnReading();
  world.Run();
  EXPECT_EQ(stuck.sink->ids(), world.runner->Continue({1, 2}, 40));
  EXPECT_EQ(world.metrics.Get().turns_parked_out, 0);
  world.ExpectAtRest();
}

TEST(SchedulerSlowReaders, AParkedTurnKeepsItsSlotWhileNobodyWaits) {
  World world(Slots(2));
  const TestTurn stuck = Stuck(world, "");
  world.Generate("", {5}, 30);
  world.Run();
  EXPECT_EQ(world.metrics.Get().parked_moves, 0);
  stuck.sink->GoOnReading();
  world.Run();
  EXPECT_EQ(stuck.sink->ids(), world.runner->Continue({1, 2}, 40));
  EXPECT_THAT(world.runner->calls(), Not(Contains(StartsWith("export"))));
  world.ExpectAtRest();
}

TEST(SchedulerSlowReaders, ASessionWithoutATurnMovesOutFirst) {
  World world(Slots(2));
  world.CreateSession("idle");
  world.ExpectHealthy("idle");
  Stuck(world, "");
  world.Generate("", {5}, 3);
  world.Run();
  EXPECT_EQ(world.metrics.Get().sessions_moved_out, 1);
  EXPECT_EQ(world.metrics.Get().parked_moves, 0);
}

TEST(SchedulerSlowReaders, TheReaderThatLagsLongestGivesItsSlotUp) {
  World world(Slots(3));
  std::vector<TestTurn> stuck;
  for (int i = 0; i < 3; ++i) {
    stuck.push_back(Stuck(world, ""));
    world.fake_clock.Advance(absl::Seconds(1));
  }
  // A read now and then is no catching up.
  stuck[0].sink->Read(1);
  world.Run();
  world.Generate("", {5}, 3);
  world.Run();
  EXPECT_THAT(world.runner->calls(), Contains("export 0 @9"));
  EXPECT_THAT(world.runner->calls(), Not(Contains(StartsWith("export 1"))));
}

TEST(SchedulerSlowReaders, ATurnComesBackOnlyWhenItsReaderHasCaughtUp) {
  World world(Slots(1));
  const TestTurn stuck = Stuck(world, "");
  const size_t before = stuck.sink->ids().size();
  world.Generate("", {5}, 3);
  world.Run();
  stuck.sink->Read(kParkEvents / 2 - 1);
  world.Run();
  EXPECT_EQ(stuck.sink->ids().size(), before);
  stuck.sink->Read(1);
  world.Run();
  EXPECT_EQ(stuck.sink->ids().size(), before + kParkEvents / 2);
  EXPECT_EQ(world.metrics.Get().turns_parked_out, 0);
}

TEST(SchedulerSlowReaders, WhoComesBackWaitsInLineWithTheNewcomers) {
  World world(Slots(1));
  const TestTurn stuck = Stuck(world, "");
  const TestTurn running = world.Generate("", {5}, 20);
  world.Step();
  world.fake_clock.Advance(absl::Seconds(1));
  const TestTurn earlier = world.Generate("", {6}, 20);
  world.Step();
  world.fake_clock.Advance(absl::Seconds(1));
  stuck.sink->GoOnReading();
  world.Step();
  world.fake_clock.Advance(absl::Seconds(1));
  const TestTurn later = world.Generate("", {7}, 20);
  while (!stuck.sink->ended()) ASSERT_TRUE(world.Step());
  EXPECT_TRUE(running.sink->ended());
  EXPECT_TRUE(earlier.sink->ended());
  EXPECT_FALSE(later.sink->started().has_value());
  world.Run();
  EXPECT_TRUE(later.sink->finished().has_value());
  world.ExpectAtRest();
}

TEST(SchedulerSlowReaders, AStepInFlightIsAwaitedBeforeTheSlotIsGivenUp) {
  WorldOptions options = Slots(1);
  options.scheduler.park_events = 1;  // parked with each token in flight
  World world(options);
  const TestTurn turn = world.Generate("", {1, 2}, 40);
  turn.sink->StopReading();
  const TestTurn other = world.Generate("", {5}, 10);
  world.Run();
  EXPECT_EQ(turn.sink->ids().size(), 1u);
  EXPECT_EQ(other.sink->ids(), world.runner->Continue({5}, 10));
  turn.sink->GoOnReading();
  world.Run();
  EXPECT_EQ(turn.sink->ids(), world.runner->Continue({1, 2}, 40));
  world.ExpectAtRest();
}

TEST(SchedulerSlowReaders, TwoHundredFiftySixThatTrickleStopNobody) {
  constexpr int kSlots = 256;
  World world(Slots(kSlots));
  std::vector<TestTurn> slow;
  for (int i = 0; i < kSlots; ++i) {
    slow.push_back(world.Generate("", World::SomeIds(4, i), 5000));
    slow.back().sink->StopReading();
  }
  world.Run();
  // Three seconds pass in 30 iterations; each reads once in that time.
  const auto trickle = [&](int iteration) {
    for (int i = 0; i < kSlots; ++i) {
      if (i % 30 == iteration % 30) slow[i].sink->Read(1);
    }
    world.fake_clock.Advance(absl::Milliseconds(100));
    world.Step();
  };
  for (int i = 0; i < 300; ++i) trickle(i);
  std::vector<TestTurn> readers;
  for (int i = 0; i < 16; ++i) {
    readers.push_back(world.Generate("", World::SomeIds(9, i), 200));
  }
  for (int i = 0; i < 4; ++i) trickle(i);
  for (const TestTurn& reader : readers) {
    EXPECT_GE(reader.sink->ids().size(), 1u) << "within half a second";
  }
  // From then on a token for each reader in each step.
  const size_t before = readers[0].sink->ids().size();
  for (int i = 0; i < 100; ++i) trickle(i);
  for (const TestTurn& reader : readers) {
    EXPECT_GE(reader.sink->ids().size(), before + 95);
  }
  for (const TestTurn& turn : slow) {
    EXPECT_FALSE(turn.sink->ended()) << turn.sink->failed();
    turn.cancel->Cancel(CancelToken::Why::kCancelled);
  }
  world.Run();
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(readers[i].sink->ids(),
              world.runner->Continue(World::SomeIds(9, i), 200));
  }
  world.ExpectAtRest();
}

TEST(SchedulerSlowReaders, WithoutImageMemoryTheTokensBringThemBack) {
  WorldOptions options = Slots(1);
  options.store.image_bytes = 0;
  World world(options);
  const TestTurn stuck = Stuck(world, "", 100);
  for (int i = 0; i < 3; ++i) {
    const TestTurn other = world.Generate("", {5}, 30);
    world.Run();
    EXPECT_EQ(other.sink->ids(), world.runner->Continue({5}, 30));
    stuck.sink->Read(stuck.sink->Unsent());
    world.Run();
  }
  stuck.sink->GoOnReading();
  world.Run();
  EXPECT_EQ(stuck.sink->ids(), world.runner->Continue({1, 2}, 100));
  EXPECT_GT(world.metrics.Get().rows_rebuild, 0);
  EXPECT_EQ(world.metrics.Get().rebuilds_ok, 3);
  EXPECT_EQ(world.metrics.Get().rebuilds_failed, 0);
  world.ExpectAtRest();
}

TEST(SchedulerSlowReaders, MoreParkedTurnsThanMayBeWithoutASlotEnd) {
  WorldOptions options = Slots(1);
  options.scheduler.max_parked_turns = 2;
  World world(options);
  world.CreateSession("a");
  std::vector<TestTurn> stuck;
  for (int i = 0; i < 3; ++i) stuck.push_back(Stuck(world, i == 2 ? "a" : ""));
  const TestTurn other = world.Generate("", {5}, 30);
  world.Run();
  EXPECT_EQ(other.sink->ids(), world.runner->Continue({5}, 30));
  EXPECT_FALSE(stuck[0].sink->ended());
  EXPECT_FALSE(stuck[1].sink->ended());
  EXPECT_EQ(Outcome(stuck[2].sink->failed()),
            "RESOURCE_EXHAUSTED CLIENT_TOO_SLOW");
  world.ExpectHealthy("a");
  for (const TestTurn& turn : stuck) turn.sink->GoOnReading();
  world.Run();
  EXPECT_EQ(stuck[0].sink->ids(), world.runner->Continue({1, 2}, 40));
  EXPECT_EQ(stuck[1].sink->ids(), world.runner->Continue({1, 2}, 40));
  world.ExpectAtRest();
}

// Stuck on "a", without a slot.
struct Away {
  explicit Away(WorldOptions options = Slots(1)) : world(std::move(options)) {
    world.CreateSession("a");
    turn = Stuck(world, "a");
    for (int i = 0; i < world.runner->info().slots; ++i) {
      const std::string id = absl::StrCat("other", i);
      world.CreateSession(id);
      world.Generate(id, {5, 6}, 3);
    }
    world.Run();
    EXPECT_EQ(world.metrics.Get().turns_parked_out, 1);
  }
  // The session is at a token border, and nothing is left of the turn.
  void ExpectBorder() {
    ASSERT_TRUE(turn.sink->ended());
    EXPECT_EQ(world.TokensOf("a").size(), 2 + turn.sink->ids().size());
    world.ExpectHealthy("a");
    world.ExpectAtRest();
  }

  World world;
  TestTurn turn;
};

TEST(SchedulerSlowReaders, ATurnWithoutASlotMayBeCancelled) {
  Away away;
  away.turn.cancel->Cancel(CancelToken::Why::kCancelled);
  away.world.Run();
  EXPECT_EQ(Outcome(away.turn.sink->failed()), "CANCELLED CANCELLED");
  away.ExpectBorder();
}

TEST(SchedulerSlowReaders, ATurnWithoutASlotEndsWithItsSession) {
  Away away;
  ASSERT_TRUE(away.world.store->Delete("a").ok());
  away.world.Run();
  EXPECT_EQ(Outcome(away.turn.sink->failed()), "ABORTED SESSION_DELETED");
  away.world.ExpectAtRest();
}

TEST(SchedulerSlowReaders, ATurnWithoutASlotIsEndedByADrain) {
  Away away;
  away.world.scheduler->StartDrain();
  away.world.scheduler->EndAll();
  away.world.Run();
  ASSERT_TRUE(away.turn.sink->finished().has_value());
  EXPECT_EQ(away.turn.sink->finished()->reason, FinishReason::kServerDrain);
  away.world.ExpectAtRest();
}

TEST(SchedulerSlowReaders, ATurnWithoutASlotEndsWithTheScheduler) {
  Away away;
  away.world.scheduler.reset();
  EXPECT_EQ(Outcome(away.turn.sink->failed()), "UNAVAILABLE DRAINING");
  EXPECT_EQ(away.world.store->counts().busy, 0);
  EXPECT_EQ(away.world.metrics.Get().turns_parked_out, 0);
}

TEST(SchedulerSlowReaders, ATurnWithoutASlotHasTheLimitsOfAnyReader) {
  WorldOptions options = Slots(1);
  options.scheduler.slow_reader_limit = absl::Seconds(7);
  Away away(options);
  away.world.fake_clock.Advance(absl::Seconds(6));
  away.turn.sink->Read(1);
  away.world.Run();
  away.world.fake_clock.Advance(absl::Seconds(6));
  away.world.Run();
  EXPECT_FALSE(away.turn.sink->ended());
  away.world.fake_clock.Advance(absl::Seconds(1));
  away.world.Run();
  EXPECT_EQ(Outcome(away.turn.sink->failed()),
            "RESOURCE_EXHAUSTED CLIENT_TOO_SLOW");
  away.ExpectBorder();
}

TEST(SchedulerSlowReaders, AStateThatDoesNotComeBackEndsItsTurnOnly) {
  Away away;
  away.world.runner->FailNextImport(absl::UnavailableError("lost device"));
  away.turn.sink->GoOnReading();
  away.world.Run();
  EXPECT_EQ(Outcome(away.turn.sink->failed()), "INTERNAL STEP_FAILED");
  EXPECT_EQ(away.world.TokensOf("a").size(), 2 + away.turn.sink->ids().size());
  EXPECT_EQ(away.world.metrics.Get().turns_parked_out, 0);
  away.world.ExpectHealthy("a");
}

// It has been let in again, and ends before its place is ready.
TEST(SchedulerSlowReaders, ATurnMayEndOnItsWayBack) {
  using Why = CancelToken::Why;
  for (const Why why : {Why::kNone, Why::kCancelled}) {
    Away away(Slots(2));
    World& world = away.world;
    const TestTurn stream = world.Generate("", {9}, 300);
    world.Step();
    world.runner->HoldExports();
    away.turn.sink->GoOnReading();
    for (int i = 0; i < 5; ++i) world.Step();
    EXPECT_EQ(world.metrics.Get().turns_parked_out, 1);
    away.turn.cancel->Cancel(why);
    world.Step();
    world.runner->ReleaseExports();
    world.Run();
    EXPECT_EQ(Outcome(away.turn.sink->failed()),
              why == Why::kNone ? "OK" : "CANCELLED CANCELLED");
    EXPECT_EQ(stream.sink->ids(), world.runner->Continue({9}, 300));
    away.ExpectBorder();
  }
}

TEST(SchedulerSlowReaders, AReaderOfOneEventNowAndThenIsClosedAfterAWindow) {
  World world(Slots(2));
  world.CreateSession("a");
  const TestTurn turn = Stuck(world, "a", 1000);
  for (int i = 0; i < 2; ++i) {
    world.fake_clock.Advance(absl::Seconds(29));
    turn.sink->Read(1);
    world.Run();
    EXPECT_FALSE(turn.sink->ended());
  }
  world.fake_clock.Advance(absl::Seconds(2));
  world.Run();
  EXPECT_EQ(Outcome(turn.sink->failed()), "RESOURCE_EXHAUSTED CLIENT_TOO_SLOW");
  world.ExpectHealthy("a");
  world.ExpectAtRest();
}

}  // namespace
}  // namespace txl
