// Sessions that come back from their images.

#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

using ::testing::Contains;
using ::testing::Not;
using ::testing::StartsWith;

TEST(SchedulerImports, AnImportThatFailsOnceIsTriedAgain) {
  World world(OneSlot());
  Fill(world, 2, 20);
  world.runner->FailNextImport(absl::UnavailableError("lost device"));
  const TestTurn failed = world.Generate("s0", {1, 2}, 3);
  world.Run();
  EXPECT_EQ(Outcome(failed.sink->failed()), "INTERNAL STEP_FAILED");
  EXPECT_EQ(world.TokensOf("s0"), World::SomeIds(20, 0));
  world.ExpectHealthy("s0");
  EXPECT_EQ(world.metrics.Get().rows_rebuild, 0);
  world.ExpectHealthy("s1");
}

WorldOptions ImportsAside() {
  WorldOptions options;
  options.runner.slots = 2;
  options.runner.imports_aside = true;
  return options;
}

TEST(SchedulerImports, NobodyElseWaitsForAStateOnItsWay) {
  World world(ImportsAside());
  Fill(world, 3, 20);  // s0 is moved out
  const TestTurn stream = world.Generate("s2", {1}, 30);
  for (int i = 0; i < 3; ++i) world.Step();
  world.runner->HoldImports();
  const TestTurn turn = world.Generate("s0", {7, 8}, 4);
  const size_t before = world.runner->plans().size();
  for (int i = 0; i < 6; ++i) world.Step();
  const std::vector<StepPlan> plans = world.runner->plans();
  EXPECT_EQ(plans.size() - before, 6);  // of the stream alone
  for (size_t i = before; i < plans.size(); ++i) {
    EXPECT_EQ(plans[i].rows.size(), 1);
  }
  world.runner->ReleaseImports();
  world.Run();
  EXPECT_THAT(world.runner->calls(), Not(Contains(StartsWith("wait"))));
  EXPECT_TRUE(turn.sink->finished().has_value());
  EXPECT_TRUE(stream.sink->finished().has_value());
  world.ExpectHealthy("s0");
  world.ExpectAtRest();
}

TEST(SchedulerImports, WhereNothingElseIsToBeDoneAStepWaitsForTheState) {
  World world(ImportsAside());
  Fill(world, 3, 20);
  world.runner->HoldImports();
  const TestTurn turn = world.Generate("s0", {7, 8}, 4);
  world.Run();
  EXPECT_TRUE(turn.sink->finished().has_value());
  EXPECT_THAT(world.runner->calls(), Contains(StartsWith("wait")));
  world.ExpectHealthy("s0");
  world.ExpectAtRest();
}

TEST(SchedulerImports, ATurnCancelledWhileItsStateArrivesLosesNothing) {
  World world(ImportsAside());
  Fill(world, 3, 20);
  const TestTurn stream = world.Generate("s2", {1}, 30);
  world.Step();
  world.runner->HoldImports();
  const TestTurn turn = world.Generate("s0", {7, 8}, 4);
  for (int i = 0; i < 3; ++i) world.Step();
  turn.cancel->Cancel(CancelToken::Why::kCancelled);
  for (int i = 0; i < 3; ++i) world.Step();
  EXPECT_EQ(Outcome(turn.sink->failed()), "CANCELLED CANCELLED");
  world.runner->ReleaseImports();
  world.Run();
  EXPECT_TRUE(stream.sink->finished().has_value());
  world.ExpectHealthy("s0");
  world.ExpectAtRest();
}

int64_t RowsOfKind(const StepPlan& plan, RowKind kind) {
  return std::count_if(plan.rows.begin(), plan.rows.end(),
                       [kind](const StepRow& row) { return row.kind == kind; });
}

// What derives from an imported state is work like a prompt: within its budget
// and beside running streams, before the turn's own rows.
TEST(SchedulerImports, AnImportedStateIsDerivedBesideRunningStreams) {
  WorldOptions options;
  options.runner.slots = 2;
  options.runner.derives = true;
  options.scheduler.prompt_rows_per_step = 10;
  World world(options);
  Fill(world, 3, 60);  // s0 is moved out
  const TestTurn stream = world.Generate("s2", {1}, 30);
  for (int i = 0; i < 3; ++i) world.Step();
  const size_t before = world.runner->plans().size();
  const TestTurn turn = world.Generate("s0", {7, 8}, 4);
  world.Run();
  ASSERT_TRUE(turn.sink->finished().has_value());
  ASSERT_TRUE(stream.sink->finished().has_value());
  int64_t derived = 0, steps = 0;
  const std::vector<StepPlan> plans = world.runner->plans();
  for (size_t i = before; i < plans.size(); ++i) {
    const int64_t rows = RowsOfKind(plans[i], RowKind::kDerive);
    if (rows == 0) continue;
    EXPECT_LE(rows, 10);
    EXPECT_EQ(RowsOfKind(plans[i], RowKind::kDecode), 1);
    derived += rows;
    ++steps;
  }
  EXPECT_EQ(derived, 32);  // the memory's length
  EXPECT_EQ(steps, 4);
  EXPECT_EQ(world.metrics.Get().rows_rebuild, 0);
  world.ExpectHealthy("s0");
  world.ExpectAtRest();
}

TEST(SchedulerImports, ATurnCancelledWhileItsStateIsDerivedLosesNothing) {
  WorldOptions options = OneSlot();
  options.runner.derives = true;
  options.scheduler.prompt_rows_per_step = 4;
  World world(options);
  Fill(world, 2, 60);
  const TestTurn turn = world.Generate("s0", {7, 8}, 4);
  for (int i = 0; i < 3; ++i) world.Step();
  turn.cancel->Cancel(CancelToken::Why::kCancelled);
  world.Run();
  EXPECT_EQ(Outcome(turn.sink->failed()), "CANCELLED CANCELLED");
  EXPECT_EQ(world.TokensOf("s0"), World::SomeIds(60, 0));
  // The next turn does not find half of it in the slot.
  world.ExpectHealthy("s0");
  world.ExpectAtRest();
}

TEST(SchedulerImports, ADamagedImageIsRebuiltFromTheTokens) {
  World world(OneSlot());
  Fill(world, 2, 90);
  world.runner->FailNextImport(absl::DataLossError("checksum"));
  const TestTurn failed = world.Generate("s0", {1, 2}, 3);
  world.Run();
  EXPECT_EQ(Outcome(failed.sink->failed()), "INTERNAL STEP_FAILED");
  EXPECT_EQ(world.TokensOf("s0"), World::SomeIds(90, 0));
  // A rebuild that is broken off changes nothing and begins anew.
  const TestTurn cancelled = world.Generate("s0", {1, 2}, 3);
  for (int i = 0; i < 3; ++i) world.Step();
  cancelled.cancel->Cancel(CancelToken::Why::kCancelled);
  world.Run();
  world.ExpectHealthy("s0");
  // All that the memory of 32 depends on: the last token is the turn's own.
  EXPECT_GE(world.metrics.Get().rows_rebuild, 32);
  world.ExpectHealthy("s0");
  world.ExpectHealthy("s1");
  world.ExpectAtRest();
}

}  // namespace
}  // namespace txl
