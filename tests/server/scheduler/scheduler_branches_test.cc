// States of sessions that are saved on demand, forked and rewound.

#include <string>
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

int CallsThatStartWith(const World& world, const std::string& start) {
  int count = 0;
  for (const std::string& call : world.runner->calls()) {
    if (call.rfind(start, 0) == 0) ++count;
  }
  return count;
}

TEST(SchedulerBranches, AStateInASlotIsSavedAndStays) {
  World world;
  Fill(world, 1, 20);
  const TestTurn save = world.Submit("s0", TurnKind::kSave, {});
  world.Run();
  EXPECT_TRUE(save.sink->finished().has_value());
  EXPECT_THAT(world.runner->calls(), Contains("export 0 @19"));
  EXPECT_GT(world.store->counts().image_bytes, 0);
  EXPECT_EQ(world.TokensOf("s0").size(), 20u);
  world.Submit("s0", TurnKind::kSave, {});
  world.Run();
  EXPECT_EQ(CallsThatStartWith(world, "export"), 1);  // it is still true
  world.ExpectHealthy("s0");
  EXPECT_THAT(world.runner->calls(), Not(Contains(StartsWith("import"))));
  world.ExpectAtRest();
}

uint64_t KeyOf(World& world, const std::string& session) {
  absl::StatusOr<SessionLease> lease =
      world.store->Acquire(SessionName::OfDefaultTenant(session));
  EXPECT_TRUE(lease.ok()) << lease.status();
  return lease->key();
}

TEST(SchedulerBranches, StatesOfIdleSessionsAreSavedWithoutATurn) {
  World world;
  Fill(world, 2, 20);
  const std::vector<uint64_t> keys = {KeyOf(world, "s0"), KeyOf(world, "s1"),
                                      12345};
  world.scheduler->SaveStates(keys);
  EXPECT_FALSE(world.scheduler->Idle());
  world.Run();
  EXPECT_TRUE(world.scheduler->Idle());
  EXPECT_EQ(CallsThatStartWith(world, "export"), 2);
  for (int i = 0; i < 2; ++i) {
    ASSERT_NE(world.store->GetImage(keys[i]), nullptr);
    EXPECT_EQ(world.store->GetImage(keys[i])->position, 19);
  }
  world.scheduler->SaveStates(keys);
  world.Run();
  EXPECT_EQ(CallsThatStartWith(world, "export"), 2);  // they are still true
  world.ExpectHealthy("s0");
  world.ExpectHealthy("s1");
  world.ExpectAtRest();
}

// The state that arrives is not the session's any more.
TEST(SchedulerBranches, NoCallIsRefusedWhileItsStateIsSaved) {
  for (const bool rewound : {false, true}) {
    World world;
    Fill(world, 1, 20);
    const uint64_t key = KeyOf(world, "s0");
    const TestTurn other = world.Generate("", World::SomeIds(3), 30);
    world.Step();  // the loop does not wait for the state
    world.runner->HoldExports();
    world.scheduler->SaveStates({{key}});
    world.Step();
    EXPECT_EQ(CallsThatStartWith(world, "export"), 1);
    if (rewound) {
      EXPECT_TRUE(world.store->Rewind({.session = "s0", .position = 9}).ok());
    }
    Ids context = world.TokensOf("s0");
    const TestTurn turn = world.Generate("s0", World::SomeIds(2, 5), 3);
    for (int i = 0; i < 8; ++i) world.Step();
    EXPECT_TRUE(turn.sink->finished().has_value());
    for (const int32_t id : World::SomeIds(2, 5)) context.push_back(id);
    EXPECT_EQ(turn.sink->ids(), world.runner->Continue(context, 3));
    world.runner->ReleaseExports();
    world.Run();
    EXPECT_TRUE(other.sink->finished().has_value());
    EXPECT_EQ(world.store->GetImage(key), nullptr);
    EXPECT_EQ(world.store->counts().image_bytes, 0);
    world.ExpectHealthy("s0");
    world.ExpectAtRest();
  }
}

TEST(SchedulerBranches, AStateThatCannotBeSavedStaysWhereItIs) {
  World world;
  Fill(world, 1, 20);
  world.runner->FailNextExport(absl::InternalError("the device is ill"));
  world.scheduler->SaveStates({{KeyOf(world, "s0")}});
  world.Run();
  EXPECT_TRUE(world.scheduler->Idle());
  EXPECT_EQ(world.store->counts().image_bytes, 0);
  world.ExpectHealthy("s0");
  EXPECT_THAT(world.runner->calls(), Not(Contains(StartsWith("import"))));
  world.ExpectAtRest();
}

TEST(SchedulerBranches, SavingWhatIsInNoSlotDoesNothing) {
  World world(OneSlot());
  Fill(world, 2, 20);  // s0 has moved out
  world.CreateSession("empty");
  const int exports = CallsThatStartWith(world, "export");
  for (const char* id : {"s0", "empty"}) {
    const TestTurn save = world.Submit(id, TurnKind::kSave, {});
    world.Run();
    EXPECT_TRUE(save.sink->finished().has_value()) << id;
  }
  EXPECT_EQ(CallsThatStartWith(world, "export"), exports);
  world.ExpectHealthy("s1");
  world.ExpectAtRest();
}

TEST(SchedulerBranches, AForkOfASavedSessionStartsFromItsImage) {
  World world;
  Fill(world, 1, 60);
  world.Submit("s0", TurnKind::kSave, {});
  world.Run();
  ASSERT_TRUE(
      world.store->Fork({.session = "s0", .new_session_id = "branch"}).ok());
  world.ExpectHealthy("branch");
  EXPECT_THAT(world.runner->calls(), Contains("import 1 @59"));
  EXPECT_EQ(world.metrics.Get().rebuilds_ok, 0);
  world.ExpectHealthy("s0");
  world.ExpectAtRest();
}

TEST(SchedulerBranches, AForkWithoutAnImageIsFedItsTokens) {
  World world;
  Fill(world, 1, 60);
  for (const int64_t position : {1, 2, 37, 60}) {
    const std::string id = absl::StrCat("branch", position);
    ASSERT_TRUE(
        world.store
            ->Fork(
                {.session = "s0", .new_session_id = id, .position = position})
            .ok());
    world.ExpectHealthy(id);
  }
  world.ExpectHealthy("s0");
  world.ExpectAtRest();
}

TEST(SchedulerBranches, ARewoundSessionGoesOnAsIfItHadNeverGoneOn) {
  for (const bool derives : {false, true}) {
    WorldOptions options;
    options.runner.derives = derives;
    World world(options);
    Fill(world, 1, 100);
    // Within the ring's spare rows, beyond them, beyond the memory.
    for (const int64_t position : {99, 90, 40, 1, 0}) {
      ASSERT_TRUE(
          world.store->Rewind({.session = "s0", .position = position}).ok());
      world.Generate("s0", {7}, 3);
      world.Run();
      world.ExpectHealthy("s0");
      EXPECT_EQ(world.TokensOf("s0").size(),
                static_cast<size_t>(position) + 4 + 3);
      world.Submit("s0", TurnKind::kAppend, World::SomeIds(100));
      world.Run();
    }
    world.ExpectAtRest();
  }
}

TEST(SchedulerBranches, AnImageOlderThanItsSessionIsCaughtUp) {
  for (const bool derives : {false, true}) {
    WorldOptions options;
    options.runner.derives = derives;
    World world(options);
    Fill(world, 1, 60);
    world.Submit("s0", TurnKind::kSave, {});
    world.Run();
    world.Submit("s0", TurnKind::kScore, World::SomeIds(2));
    world.Run();
    ASSERT_TRUE(
        world.store->Fork({.session = "s0", .new_session_id = "a"}).ok());
    world.Submit("a", TurnKind::kAppend, World::SomeIds(5));
    world.Run();
    // Its rows are lost, the image of the beginning is not.
    const uint64_t key = world.store->Acquire("a")->key();
    StateImage image =
        *world.store->GetImage(world.store->Acquire("s0")->key());
    ASSERT_TRUE(world.store->PutImage(key, image).ok());
    ASSERT_TRUE(
        world.store->Fork({.session = "a", .new_session_id = "b"}).ok());
    const int64_t before = world.metrics.Get().rows_rebuild;
    world.ExpectHealthy("b");
    EXPECT_EQ(world.metrics.Get().rows_rebuild - before, 5);
    world.ExpectAtRest();
  }
}

TEST(SchedulerBranches, AnImageThatIsFarBehindIsNotImported) {
  World world;
  Fill(world, 1, 20);
  world.Submit("s0", TurnKind::kSave, {});
  world.Run();
  const StateImage image =
      *world.store->GetImage(world.store->Acquire("s0")->key());
  world.Submit("s0", TurnKind::kAppend, World::SomeIds(100));
  world.Run();
  ASSERT_TRUE(
      world.store->PutImage(world.store->Acquire("s0")->key(), image).ok());
  ASSERT_TRUE(world.store->Fork({.session = "s0", .new_session_id = "b"}).ok());
  world.ExpectHealthy("b");
  EXPECT_THAT(world.runner->calls(), Not(Contains(StartsWith("import"))));
  world.ExpectAtRest();
}

}  // namespace
}  // namespace txl
