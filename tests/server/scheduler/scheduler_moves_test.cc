// Slots, images and what happens when the device or the memory fails.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

using ::testing::Contains;
using ::testing::Not;
using ::testing::StartsWith;

TEST(SchedulerMoves, AShortTurnSavesNothing) {
  World world;
  Fill(world, 1, 20);
  world.ExpectHealthy("s0");
  EXPECT_THAT(world.runner->calls(), Not(Contains(StartsWith("export"))));
  world.ExpectAtRest();
}

TEST(SchedulerMoves, ANewSessionStartsInAClearedSlot) {
  World world(OneSlot());
  world.Generate("", {1}, 1);
  world.Run();
  world.Generate("", {2}, 1);
  world.Run();
  EXPECT_EQ(world.runner->calls(),
            (std::vector<std::string>{"clear 0", "configure 0", "submit 0",
                                      "clear 0", "configure 0", "submit 1"}));
  world.ExpectAtRest();
}

TEST(SchedulerMoves, ALongPromptSavesTheStateAndDropsTheImageAtItsCommit) {
  World world;
  Fill(world, 1, 20);
  world.Generate("s0", World::SomeIds(40), 3);
  world.Step();
  EXPECT_THAT(world.runner->calls(), Contains("export 0 @19"));
  EXPECT_GT(world.store->counts().image_bytes, 0);
  world.Run();
  EXPECT_EQ(world.store->counts().image_bytes, 0);
  world.ExpectHealthy("s0");
  EXPECT_EQ(world.metrics.Get().sessions_moved_out, 0);
  world.ExpectAtRest();
}

TEST(SchedulerMoves, ABrokenLongPromptComesBackFromItsImage) {
  World world;
  Fill(world, 1, 20);
  const TestTurn turn = world.Generate("s0", World::SomeIds(60), 3);
  world.Step();
  world.Step();
  turn.cancel->Cancel(CancelToken::Why::kCancelled);
  world.Run();
  EXPECT_EQ(world.metrics.Get().slots_used, 0);
  world.ExpectHealthy("s0");
  EXPECT_THAT(world.runner->calls(), Contains("import 0 @19"));
  EXPECT_EQ(world.store->counts().image_bytes, 0);
  world.ExpectAtRest();
}

TEST(SchedulerMoves, AnImageThatIsStillTrueIsNotMadeAgain) {
  World world(OneSlot());
  Fill(world, 2, 20);  // s0 is moved out by s1
  world.Submit("s0", TurnKind::kScore, World::SomeIds(5));
  world.Run();
  world.Submit("s1", TurnKind::kScore, World::SomeIds(5));
  world.Run();
  world.Submit("s0", TurnKind::kScore, World::SomeIds(60));
  world.Run();
  int exports = 0;
  for (const std::string& call : world.runner->calls()) {
    exports += call.rfind("export", 0) == 0;
  }
  EXPECT_EQ(exports, 2);  // one for each session
  world.ExpectHealthy("s0");
  world.ExpectHealthy("s1");
  world.ExpectAtRest();
}

TEST(SchedulerMoves, TheSessionUsedLeastRecentlyMovesOut) {
  WorldOptions options;
  options.runner.slots = 3;
  World world(options);
  for (int i = 0; i < 3; ++i) {
    world.CreateSession(absl::StrCat("s", i));
    world.ExpectHealthy(absl::StrCat("s", i));
    world.fake_clock.Advance(absl::Seconds(1));
  }
  world.ExpectHealthy("s0");
  world.CreateSession("new");
  world.ExpectHealthy("new");
  EXPECT_THAT(world.runner->calls(), Contains("export 1 @4"));
  world.ExpectAtRest();
}

TEST(SchedulerMoves, ASessionIdleForLessThanTheMinimumStays) {
  WorldOptions options = OneSlot();
  options.scheduler.min_idle = absl::Seconds(10);
  options.scheduler.retry_after = absl::Milliseconds(70);
  World world(options);
  Fill(world, 1, 20);
  world.fake_clock.Advance(absl::Seconds(9));
  const TestTurn refused = world.Generate("", {1, 2}, 3);
  world.Run();
  EXPECT_EQ(Outcome(refused.sink->failed()),
            "RESOURCE_EXHAUSTED NO_SESSION_MEMORY");
  EXPECT_EQ(GetErrorDetails(refused.sink->failed()).retry,
            absl::Milliseconds(70));
  world.fake_clock.Advance(absl::Seconds(1));
  const TestTurn taken = world.Generate("", {1, 2}, 3);
  world.Run();
  EXPECT_TRUE(taken.sink->finished().has_value());
  world.ExpectHealthy("s0");
  world.ExpectAtRest();
}

TEST(SchedulerMoves, ATurnWaitsWhileEverySlotWorks) {
  WorldOptions options = OneSlot();
  World world(options);
  const TestTurn first = world.Generate("", {1}, 30);
  const TestTurn second = world.Generate("", {2}, 3);
  for (int i = 0; i < 20; ++i) world.Step();
  EXPECT_FALSE(second.sink->started().has_value());
  EXPECT_EQ(world.metrics.Get().queued_calls, 1);
  world.Run();
  EXPECT_EQ(second.sink->ids(), world.runner->Continue({2}, 3));
  world.ExpectAtRest();
}

TEST(SchedulerMoves, AChattySessionCannotKeepAnotherFromItsSlot) {
  World world(OneSlot());
  Fill(world, 1, 5);
  const TestTurn chat = world.Generate("s0", {1}, 3);
  world.Step();
  const TestTurn waits = world.Generate("", {2}, 3);
  // The chat's next turn comes in the moment it may.
  TestTurn again;
  chat.sink->AtEnd([&] { again = world.Generate("s0", {3}, 3); });
  while (!waits.sink->started().has_value()) ASSERT_TRUE(world.Step());
  EXPECT_FALSE(again.sink->started().has_value());
  world.Run();
  EXPECT_TRUE(waits.sink->finished().has_value());
  EXPECT_TRUE(again.sink->finished().has_value());
  world.ExpectHealthy("s0");
  world.ExpectAtRest();
}

TEST(SchedulerMoves, SlotsOfEndedSessionsAreFree) {
  WorldOptions options;
  options.runner.slots = 2;
  World world(options);
  Fill(world, 2, 20);
  EXPECT_EQ(world.metrics.Get().slots_used, 2);
  ASSERT_TRUE(world.store->Delete("s0").ok());
  world.Run();
  EXPECT_EQ(world.metrics.Get().slots_used, 1);
  world.fake_clock.Advance(absl::Hours(25));
  world.Run();
  EXPECT_EQ(world.store->counts().idle, 0);
  EXPECT_EQ(world.metrics.Get().slots_used, 0);
  world.ExpectAtRest();
}

TEST(SchedulerMoves, WithoutImageMemoryNobodyIsRefusedAndTheTokensServe) {
  WorldOptions options = OneSlot();
  options.store.image_bytes = 100;  // an image of 20 rows has 80 bytes
  World world(options);
  Fill(world, 2, 21);  // s0's image fills the budget
  const TestTurn turn = world.Generate("", {1, 2}, 3);
  world.Run();
  EXPECT_EQ(turn.sink->ids(), world.runner->Continue({1, 2}, 3));
  EXPECT_LE(world.store->counts().image_bytes, 100);
  EXPECT_EQ(world.metrics.Get().rows_rebuild, 0);
  world.ExpectHealthy("s1");  // its state was dropped
  EXPECT_EQ(world.metrics.Get().rows_rebuild, 20);
  world.ExpectHealthy("s0");
  EXPECT_EQ(world.metrics.Get().rows_rebuild, 20);
  world.ExpectAtRest();
}

TEST(SchedulerMoves, AMachineWithoutMemoryForAnImageRefusesNobodyEither) {
  World world(OneSlot());
  Fill(world, 1, 21);
  world.runner->FailNextExport(absl::ResourceExhaustedError("no memory"));
  const TestTurn turn = world.Generate("", {1, 2}, 3);
  world.Run();
  EXPECT_EQ(turn.sink->ids(), world.runner->Continue({1, 2}, 3));
  world.ExpectHealthy("s0");
  EXPECT_EQ(world.metrics.Get().rows_rebuild, 20);
  world.ExpectAtRest();
}

TEST(SchedulerMoves, ALongPromptWithoutARollbackIsRebuiltWhenItBreaksOff) {
  WorldOptions options = OneSlot();
  options.store.image_bytes = 0;
  World world(options);
  Fill(world, 1, 21);
  const TestTurn broken = world.Generate("s0", World::SomeIds(60), 3);
  for (int i = 0; i < 3; ++i) world.Step();
  broken.cancel->Cancel(CancelToken::Why::kCancelled);
  world.Run();
  EXPECT_EQ(world.TokensOf("s0"), World::SomeIds(21, 0));
  world.ExpectHealthy("s0");
  EXPECT_EQ(world.metrics.Get().rows_rebuild, 20);
  world.Submit("s0", TurnKind::kScore, World::SomeIds(60));
  world.Run();
  world.ExpectHealthy("s0");
  world.ExpectAtRest();
}

TEST(SchedulerMoves, AFailedExportEndsTheNewTurnOnly) {
  World world(OneSlot());
  Fill(world, 1, 20);
  world.runner->FailNextExport(absl::InternalError("lost device"));
  const TestTurn failed = world.Generate("", {1, 2}, 3);
  world.Run();
  EXPECT_EQ(Outcome(failed.sink->failed()), "INTERNAL STEP_FAILED");
  world.runner->FailNextExport(absl::InternalError("lost device"));
  const TestTurn long_prompt = world.Generate("s0", World::SomeIds(60), 3);
  world.Run();
  EXPECT_EQ(Outcome(long_prompt.sink->failed()), "INTERNAL STEP_FAILED");
  world.ExpectHealthy("s0");
  world.ExpectAtRest();
}

TEST(SchedulerMoves, AppendAndScoreRebuildToo) {
  for (TurnKind kind : {TurnKind::kAppend, TurnKind::kScore}) {
    World world(OneSlot());
    Fill(world, 2, 40);
    world.runner->FailNextImport(absl::DataLossError("checksum"));
    world.Generate("s0", {1}, 1);
    world.Run();
    const TestTurn turn = world.Submit("s0", kind, {5, 6, 7});
    world.Run();
    ASSERT_TRUE(turn.sink->finished().has_value());
    EXPECT_EQ(world.metrics.Get().rows_rebuild, 32);
    world.ExpectHealthy("s0");
  }
}

TEST(SchedulerMoves, ARowThatIsNotFiniteEndsItsTurnOnly) {
  World world;
  world.CreateSession("a");
  const TestTurn other = world.Generate("", World::SomeIds(3, 1), 12);
  world.Step();
  const TestTurn bad = world.Generate("a", World::SomeIds(3, 2), 12);
  world.runner->FailRow(1, 6);
  world.Run();
  EXPECT_EQ(Outcome(bad.sink->failed()), "INTERNAL STEP_FAILED");
  EXPECT_EQ(bad.sink->ids().size(), 4u);
  EXPECT_EQ(world.store->Get("a")->position, 7);
  EXPECT_EQ(other.sink->ids(),
            world.runner->Continue(World::SomeIds(3, 1), 12));
  world.ExpectHealthy("a");
  world.ExpectAtRest();
}

TEST(SchedulerMoves, AFailedStepEndsEveryTurnThatHadRowsInIt) {
  World world;
  const TestTurn a = world.Generate("", {1}, 10);
  const TestTurn b = world.Generate("", {2}, 10);
  world.runner->FailStep(3, absl::InternalError("out of memory"));
  world.Run();
  EXPECT_EQ(Outcome(a.sink->failed()), "INTERNAL STEP_FAILED");
  EXPECT_EQ(Outcome(b.sink->failed()), "INTERNAL STEP_FAILED");
  EXPECT_EQ(a.sink->ids().size(), 3u);
  const TestTurn next = world.Generate("", {1}, 10);
  world.Run();
  EXPECT_EQ(next.sink->ids(), world.runner->Continue({1}, 10));
  world.ExpectAtRest();
}

}  // namespace
}  // namespace txl
