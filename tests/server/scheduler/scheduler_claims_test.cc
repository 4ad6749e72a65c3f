// States on their way to the host keep nobody waiting but the turns that need
// them there.

#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

using ::testing::Contains;
using ::testing::Not;
using ::testing::StartsWith;

WorldOptions TwoSlots() {
  WorldOptions options;
  options.runner.slots = 2;
  return options;
}

// In two slots: "idle" with 20 tokens, and a stream that runs.
class Claims : public testing::Test {
 protected:
  Claims() : world_(TwoSlots()) {
    world_.CreateSession("idle");
    world_.Submit("idle", TurnKind::kAppend, World::SomeIds(20));
    world_.Run();
    world_.runner->HoldExports();
    stream_ = world_.Generate("", {1}, 500);
    world_.Step();
  }

  // Some steps; the stream gets a token in each.
  void ExpectStreaming() {
    const size_t before = stream_.sink->ids().size();
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(world_.Step());
    EXPECT_GE(stream_.sink->ids().size(), before + 9);
  }

  // Everything ends as if no state had ever been slow.
  void ExpectAllWell() {
    world_.runner->ReleaseExports();
    world_.Run();
    EXPECT_EQ(stream_.sink->ids(), world_.runner->Continue({1}, 500));
    world_.ExpectHealthy("idle");
    world_.ExpectAtRest();
  }

  bool Called(const std::string& call) {
    for (const std::string& made : world_.runner->calls()) {
      if (made == call) return true;
    }
    return false;
  }

  World world_;
  TestTurn stream_;
};

TEST_F(Claims, ASessionThatMovesOutKeepsNoStreamWaiting) {
  const TestTurn turn = world_.Generate("", {2, 3}, 5);
  ExpectStreaming();
  EXPECT_TRUE(Called("export 0 @19"));
  EXPECT_FALSE(turn.sink->started().has_value());
  EXPECT_EQ(world_.store->counts().image_bytes, 0);
  EXPECT_EQ(world_.metrics.Get().sessions_moved_out, 0);
  world_.runner->ReleaseExports();
  world_.Step();
  EXPECT_TRUE(turn.sink->started().has_value());
  EXPECT_GT(world_.store->counts().image_bytes, 0);
  EXPECT_EQ(world_.metrics.Get().sessions_moved_out, 1);
  world_.Run();
  EXPECT_EQ(turn.sink->ids(), world_.runner->Continue({2, 3}, 5));
  ExpectAllWell();
}

TEST_F(Claims, ALongPromptWaitsForItsRollbackAlone) {
  const TestTurn turn = world_.Generate("idle", World::SomeIds(40), 5);
  ExpectStreaming();
  EXPECT_TRUE(Called("export 0 @19"));
  EXPECT_FALSE(turn.sink->started().has_value());
  world_.runner->ReleaseExports();
  world_.Run();
  EXPECT_TRUE(turn.sink->finished().has_value());
  ExpectAllWell();
}

TEST_F(Claims, WhereNothingElseIsToBeDoneTheLoopWaits) {
  stream_.cancel->Cancel(CancelToken::Why::kCancelled);
  world_.Run();
  const TestTurn first = world_.Generate("idle", World::SomeIds(40), 5);
  std::thread device([this] { world_.runner->ReleaseExports(); });
  world_.Run();
  device.join();
  EXPECT_TRUE(first.sink->finished().has_value());
  world_.ExpectHealthy("idle");
  world_.ExpectAtRest();
}

TEST_F(Claims, ATurnThatEndsBeforeItEntersChangesNothing) {
  using Why = CancelToken::Why;
  const TestTurn evicts = world_.Generate("", {2, 3}, 5);
  ExpectStreaming();
  evicts.cancel->Cancel(Why::kCancelled);
  world_.Step();
  EXPECT_EQ(Outcome(evicts.sink->failed()), "CANCELLED CANCELLED");
  const TestTurn longer = world_.Generate("idle", World::SomeIds(40), 5);
  ExpectStreaming();
  longer.cancel->Cancel(Why::kDeadline);
  world_.Step();
  EXPECT_EQ(Outcome(longer.sink->failed()),
            "DEADLINE_EXCEEDED DEADLINE_EXCEEDED");
  EXPECT_EQ(world_.TokensOf("idle"), World::SomeIds(20));
  // The session never left its slot.
  const TestTurn next = world_.Generate("idle", {7}, 5);
  ExpectStreaming();
  EXPECT_TRUE(next.sink->finished().has_value());
  EXPECT_THAT(world_.runner->calls(), Not(Contains(StartsWith("import"))));
  EXPECT_EQ(world_.store->counts().image_bytes, 0);
  ExpectAllWell();
}

TEST_F(Claims, ASessionThatMovesOutComesBackAfterIt) {
  const TestTurn other = world_.Generate("", {2, 3}, 5);
  world_.Step();
  const TestTurn back = world_.Generate("idle", {7}, 5);
  ExpectStreaming();
  EXPECT_FALSE(back.sink->started().has_value());
  world_.runner->ReleaseExports();
  world_.Run();
  EXPECT_EQ(other.sink->ids(), world_.runner->Continue({2, 3}, 5));
  EXPECT_TRUE(Called("import 0 @19"));
  std::vector<int32_t> ids = World::SomeIds(20);
  ids.push_back(7);
  EXPECT_EQ(back.sink->ids(), world_.runner->Continue(ids, 5));
  ExpectAllWell();
}

TEST_F(Claims, AStateThatDoesNotArriveEndsTheNewTurnOnly) {
  world_.runner->FailNextExport(absl::InternalError("lost device"));
  const TestTurn evicts = world_.Generate("", {2, 3}, 5);
  ExpectStreaming();
  world_.runner->ReleaseExports();
  world_.Step();
  EXPECT_EQ(Outcome(evicts.sink->failed()), "INTERNAL STEP_FAILED");
  world_.runner->HoldExports();
  world_.runner->FailNextExport(absl::InternalError("lost device"));
  const TestTurn longer = world_.Generate("idle", World::SomeIds(40), 5);
  ExpectStreaming();
  world_.runner->ReleaseExports();
  world_.Step();
  EXPECT_EQ(Outcome(longer.sink->failed()), "INTERNAL STEP_FAILED");
  EXPECT_EQ(world_.metrics.Get().sessions_moved_out, 0);
  ExpectAllWell();
}

TEST_F(Claims, ASessionThatEndsWhileItMovesOutNeedsNoImage) {
  const TestTurn turn = world_.Generate("", {2, 3}, 5);
  ExpectStreaming();
  ASSERT_TRUE(world_.store->Delete("idle").ok());
  ExpectStreaming();
  EXPECT_EQ(world_.metrics.Get().slots_used, 2) << "nobody else's meanwhile";
  world_.runner->ReleaseExports();
  world_.Run();
  EXPECT_EQ(turn.sink->ids(), world_.runner->Continue({2, 3}, 5));
  EXPECT_EQ(world_.store->counts().image_bytes, 0);
  EXPECT_EQ(world_.metrics.Get().slots_used, 0);
  world_.ExpectAtRest();
}

// It ends while it moves out, and so does the turn that it makes room for.
TEST_F(Claims, ASlotThatNobodyWantsAnyMoreIsFree) {
  const TestTurn turn = world_.Generate("", {2, 3}, 5);
  ExpectStreaming();
  ASSERT_TRUE(world_.store->Delete("idle").ok());
  world_.Step();
  turn.cancel->Cancel(CancelToken::Why::kCancelled);
  world_.Step();
  EXPECT_EQ(world_.metrics.Get().slots_used, 1);
  const TestTurn next = world_.Generate("", {4}, 3);
  ExpectStreaming();
  EXPECT_TRUE(next.sink->finished().has_value());
  world_.Run();
  world_.ExpectAtRest();
}

TEST_F(Claims, ADrainEndsTurnsThatHaveNotEntered) {
  const TestTurn turn = world_.Generate("", {2, 3}, 5);
  ExpectStreaming();
  world_.scheduler->StartDrain();
  world_.scheduler->EndAll();
  world_.Run();
  EXPECT_EQ(Outcome(turn.sink->failed()), "UNAVAILABLE DRAINING");
  EXPECT_TRUE(stream_.sink->finished().has_value());
  world_.ExpectAtRest();
}

TEST_F(Claims, TheSchedulersEndWaitsForNoState) {
  const TestTurn turn = world_.Generate("", {2, 3}, 5);
  ExpectStreaming();
  world_.scheduler.reset();
  EXPECT_EQ(Outcome(turn.sink->failed()), "UNAVAILABLE DRAINING");
  EXPECT_EQ(Outcome(stream_.sink->failed()), "UNAVAILABLE DRAINING");
}

}  // namespace
}  // namespace txl
