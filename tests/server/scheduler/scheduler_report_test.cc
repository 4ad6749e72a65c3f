// What the scheduler tells of itself, and sessions that leave their slots
// because somebody says so.

#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

SchedulerReport ReportOf(World& world) {
  std::optional<SchedulerReport> report;
  world.scheduler->Report(
      [&](SchedulerReport taken) { report = std::move(taken); });
  EXPECT_FALSE(report.has_value()) << "not before the loop comes to it";
  world.Step();
  EXPECT_TRUE(report.has_value());
  return report.value_or(SchedulerReport());
}

TestTurn MoveOut(World& world, const std::string& session) {
  return world.Submit(session, TurnKind::kSave, {},
                      [](Turn& turn) { turn.moves_out = true; });
}

TEST(SchedulerReport, OfAServerThatDoesNothingIsEmpty) {
  World world;
  const SchedulerReport report = ReportOf(world);
  EXPECT_THAT(report.turns, IsEmpty());
  EXPECT_THAT(report.slots, IsEmpty());
  EXPECT_EQ(report.all_turns, 0);
  EXPECT_EQ(report.slots_total, world.runner->info().slots);
  EXPECT_EQ(report.slots_used, 0);
  EXPECT_EQ(report.steps_in_flight, 0);
}

TEST(SchedulerReport, HasTheTurnThatRunsAndThoseThatWait) {
  World world(OneSlot());
  Fill(world, 2, 3);  // s1 has the slot
  const TestTurn runs = world.Generate("s1", World::SomeIds(2), 100);
  world.Step();
  world.Step();
  world.fake_clock.Advance(absl::Seconds(3));
  const TestTurn waits =
      world.Submit("s0", TurnKind::kAppend, World::SomeIds(5),
                   [](Turn& turn) { turn.priority = 4; });
  const SchedulerReport report = ReportOf(world);
  ASSERT_THAT(report.turns, SizeIs(2));
  EXPECT_EQ(report.all_turns, 2);
  const TurnReport& running = report.turns[0];
  EXPECT_STREQ(running.state, "decoding");
  EXPECT_EQ(running.name, SessionName::OfDefaultTenant("s1"));
  EXPECT_EQ(running.kind, TurnKind::kGenerate);
  EXPECT_EQ(running.age, absl::Seconds(3));
  EXPECT_EQ(running.tokens_in, 2);
  EXPECT_EQ(running.slot, 0);
  EXPECT_EQ(running.rows_left, 0);
  EXPECT_FALSE(running.away);
  const TurnReport& waiting = report.turns[1];
  EXPECT_STREQ(waiting.state, "queued");
  EXPECT_EQ(waiting.name, SessionName::OfDefaultTenant("s0"));
  EXPECT_EQ(waiting.kind, TurnKind::kAppend);
  EXPECT_EQ(waiting.age, absl::ZeroDuration());
  EXPECT_EQ(waiting.tokens_in, 5);
  EXPECT_EQ(waiting.priority, 4);
  EXPECT_EQ(waiting.slot, -1);
  ASSERT_THAT(report.slots, SizeIs(1));
  EXPECT_EQ(report.slots[0].key, running.key);
  EXPECT_TRUE(report.slots[0].running);
  EXPECT_GT(report.steps_planned, 0);
  world.Run();
}

TEST(SchedulerReport, SaysHowLongASlotsSessionHasBeenIdle) {
  World world;
  Fill(world, 1, 4);
  world.fake_clock.Advance(absl::Seconds(7));
  const SchedulerReport report = ReportOf(world);
  ASSERT_THAT(report.slots, SizeIs(1));
  EXPECT_FALSE(report.slots[0].running);
  EXPECT_EQ(report.slots[0].rows, 3);
  EXPECT_EQ(report.slots[0].idle, absl::Seconds(7));
  EXPECT_EQ(report.slots_used, 1);
}

TEST(SchedulerReport, ListsAThousandTurnsAndCountsAll) {
  WorldOptions options = OneSlot();
  options.scheduler.max_queued_calls = 2000;
  World world(options);
  world.Generate("", World::SomeIds(1), 100);
  world.Step();
  for (int i = 0; i < 1200; ++i) world.Generate("", World::SomeIds(1), 1);
  const SchedulerReport report = ReportOf(world);
  EXPECT_THAT(report.turns, SizeIs(kMostReported));
  EXPECT_EQ(report.all_turns, 1201);
}

TEST(SchedulerReport, IsGivenAtTheEndToo) {
  bool taken = false;
  {
    World world;
    world.scheduler->Report([&](SchedulerReport) { taken = true; });
  }
  EXPECT_TRUE(taken);
}

TEST(MovingOut, FreesTheSlotAndKeepsTheState) {
  World world;
  Fill(world, 1, 6);
  ASSERT_EQ(world.metrics.Get().slots_used, 1);
  const TestTurn moved = MoveOut(world, "s0");
  world.Run();
  EXPECT_TRUE(moved.sink->finished().has_value());
  EXPECT_EQ(world.metrics.Get().slots_used, 0);
  EXPECT_EQ(world.metrics.Get().sessions_moved_out, 1);
  EXPECT_FALSE(world.store->Get("s0")->in_slot);
  world.ExpectHealthy("s0");
  EXPECT_EQ(world.metrics.Get().image_restores_ok, 1);
  EXPECT_EQ(world.metrics.Get().rows_rebuild, 0);
  world.ExpectAtRest();
}

TEST(MovingOut, OfASessionThatIsInNoSlotDoesNothing) {
  World world;
  Fill(world, 1, 6);
  MoveOut(world, "s0");
  world.Run();
  const std::vector<std::string> before = world.runner->calls();
  const TestTurn again = MoveOut(world, "s0");
  world.Run();
  EXPECT_TRUE(again.sink->finished().has_value());
  EXPECT_EQ(world.runner->calls(), before);
  EXPECT_EQ(world.metrics.Get().sessions_moved_out, 1);
}

TEST(MovingOut, WithoutRoomForAnImageTheTokensAreFedAgain) {
  WorldOptions options;
  options.store.image_bytes = 0;
  World world(options);
  Fill(world, 1, 6);
  MoveOut(world, "s0");
  world.Run();
  EXPECT_EQ(world.metrics.Get().slots_used, 0);
  world.ExpectHealthy("s0");
  EXPECT_GT(world.metrics.Get().rows_rebuild, 0);
  world.ExpectAtRest();
}

TEST(MovingOut, OfASessionThatEndsMeanwhileLeavesNothing) {
  World world;
  Fill(world, 1, 6);
  world.runner->HoldExports();
  const TestTurn moved = MoveOut(world, "s0");
  ASSERT_TRUE(world.store->Delete("s0").ok());
  world.runner->ReleaseExports();
  world.Run();
  EXPECT_TRUE(moved.sink->ended());
  EXPECT_EQ(world.metrics.Get().slots_used, 0);
  world.ExpectAtRest();
}

TEST(MovingOut, AStateThatCannotBeSavedStays) {
  World world;
  Fill(world, 1, 6);
  world.runner->FailNextExport(absl::InternalError("no"));
  const TestTurn moved = MoveOut(world, "s0");
  world.Run();
  EXPECT_EQ(GetErrorDetails(moved.sink->failed()).reason, "STEP_FAILED");
  EXPECT_TRUE(world.store->Get("s0")->in_slot);
  world.ExpectHealthy("s0");
  world.ExpectAtRest();
}

}  // namespace
}  // namespace txl
