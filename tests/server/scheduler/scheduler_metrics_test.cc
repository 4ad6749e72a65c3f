// What the scheduler observes: times of the fake clock, lengths, steps, and
// sessions on their way in and out.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// The steps of a test end one after the other, a second apart.
WorldOptions OneByOne() {
  WorldOptions options;
  options.runner.depth = 1;
  return options;
}

void StepBySecond(World& world) {
  for (int i = 0; i < 100; ++i) {
    world.fake_clock.Advance(absl::Seconds(1));
    if (!world.Step()) return;
  }
  FAIL() << "the turn does not end";
}

TEST(SchedulerMetrics, ATurnsTimesAreThoseOfItsEvents) {
  World world(OneByOne());
  world.Generate("", {1, 2, 3}, 4);
  StepBySecond(world);
  const Distributions d = world.metrics.Get().distributions;
  // Admitted after one second; a token in that iteration and in each after it.
  EXPECT_EQ(d.queue_seconds.sum(), 1);
  EXPECT_EQ(d.first_token_seconds.count(), 1);
  EXPECT_EQ(d.first_token_seconds.sum(), 1);
  EXPECT_EQ(d.inter_token_seconds.count(), 3);
  EXPECT_EQ(d.inter_token_seconds.sum(), 3);
  EXPECT_EQ(d.time_per_output_token_seconds.sum(), 1);
  EXPECT_EQ(d.request_seconds.sum(), 4);
  EXPECT_EQ(d.prompt_tokens.sum(), 3);
  EXPECT_EQ(d.generated_tokens.sum(), 4);
  EXPECT_EQ(world.metrics.Get().tokens_prompt, 3);
  world.ExpectAtRest();
}

TEST(SchedulerMetrics, TurnsEndForTheReasonThatTheirClientsSee) {
  World world;
  world.CreateSession("a");
  world.Generate("a", {1, 2}, 3);
  world.Run();
  world.Submit("a", TurnKind::kAppend, {4, 5});
  world.Run();
  world.Submit("a", TurnKind::kScore, {4, 5});
  world.Run();
  const TestTurn cancelled = world.Generate("a", {1}, 50);
  world.Step();
  cancelled.cancel->Cancel(CancelToken::Why::kCancelled);
  world.Run();
  world.Generate("a", {1}, 50);
  world.Step();
  EXPECT_TRUE(world.store->Delete("a").ok());
  world.Run();
  EXPECT_THAT(world.metrics.Get().turns_ended,
              ElementsAre(Pair(Pair("ABORTED", "SESSION_DELETED"), 1),
                          Pair(Pair("CANCELLED", "CANCELLED"), 1),
                          Pair(Pair("OK", "APPENDED"), 1),
                          Pair(Pair("OK", "MAX_TOKENS"), 1),
                          Pair(Pair("OK", "SCORED"), 1)));
  world.ExpectAtRest();
}

TEST(SchedulerMetrics, ATurnThatEndsInTheQueueHasItsTimeThere) {
  WorldOptions options = OneByOne();
  options.runner.slots = 1;
  World world(options);
  world.Generate("", {1}, 50);
  world.Step();
  const absl::Duration now = world.fake_clock.Monotonic();
  world.Generate("", {3, 4}, 5,
                 [&](Turn& turn) { turn.deadline = now + absl::Seconds(2); });
  world.Step();
  world.fake_clock.Advance(absl::Seconds(2));
  world.Step();
  const Snapshot s = world.metrics.Get();
  EXPECT_EQ(s.turns_ended.at({"DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"}), 1);
  EXPECT_EQ(s.distributions.queue_seconds.sum(), 2);
  EXPECT_EQ(s.distributions.request_seconds.sum(), 2);
  EXPECT_EQ(s.distributions.prompt_tokens.sum(), 2);
  EXPECT_EQ(s.distributions.generated_tokens.count(), 1);
  EXPECT_EQ(s.tokens_prompt, 1);  // of the other one
  world.Run();
  world.ExpectAtRest();
}

TEST(SchedulerMetrics, TheTimeFromCancellationToTheEndIsObserved) {
  World world(OneByOne());
  const TestTurn turn = world.Generate("", {1}, 50);
  world.Step();
  turn.cancel->Cancel(CancelToken::Why::kCancelled,
                      world.fake_clock.Monotonic());
  world.fake_clock.Advance(absl::Milliseconds(250));
  world.Step();
  EXPECT_TRUE(turn.sink->ended());
  const Distributions d = world.metrics.Get().distributions;
  EXPECT_EQ(d.cancel_to_release_seconds.count(), 1);
  EXPECT_EQ(d.cancel_to_release_seconds.sum(), 0.25);
  world.ExpectAtRest();
}

TEST(SchedulerMetrics, StepsAreOfPromptsOfStreamsOrOfBoth) {
  WorldOptions options = OneByOne();
  options.runner.device_seconds = 0.5;
  World world(options);
  world.Generate("", {1, 2, 3}, 4);
  world.Step();  // the prompt of the first
  world.Step();  // a token of it
  world.Generate("", {4, 5}, 1);
  world.Step();  // a token of it beside the prompt of the second
  world.Run();   // its last token
  const Distributions d = world.metrics.Get().distributions;
  const auto steps = [&](StepKind kind) {
    return d.step_seconds[static_cast<size_t>(kind)].count();
  };
  EXPECT_EQ(steps(StepKind::kPrompt), 1);
  EXPECT_EQ(steps(StepKind::kDecode), 2);
  EXPECT_EQ(steps(StepKind::kMixed), 1);
  EXPECT_EQ(d.step_seconds[0].sum(), 1);
  EXPECT_EQ(d.step_batch_size.count(), 4);
  EXPECT_EQ(d.step_batch_size.sum(), 1 + 1 + 2 + 1);
  EXPECT_EQ(d.step_tokens.sum(), 3 + 1 + 3 + 1);
  EXPECT_EQ(world.metrics.Get().last_step, world.fake_clock.Now());
  world.ExpectAtRest();
}

TEST(SchedulerMetrics, AFailedStepIsCountedAsOne) {
  World world(OneByOne());
  world.runner->FailStep(0, absl::InternalError("device"));
  world.Generate("", {1, 2, 3}, 4);
  world.Run();
  const Snapshot s = world.metrics.Get();
  EXPECT_EQ(s.steps_failed, 1);
  EXPECT_EQ(s.turns_ended.at({"INTERNAL", "STEP_FAILED"}), 1);
  EXPECT_EQ(s.tokens_prompt, 0);
  world.ExpectAtRest();
}

TEST(SchedulerMetrics, AStalledStreamsTimeEndsWhenItReadsOrEnds) {
  WorldOptions options = OneByOne();
  options.scheduler.park_events = 4;
  World world(options);
  const TestTurn turn = world.Generate("", {1}, 50);
  turn.sink->StopReading();
  world.Run();
  EXPECT_EQ(world.metrics.Get().turns_parked, 1);
  world.fake_clock.Advance(absl::Seconds(3));
  turn.sink->Read(4);
  world.Step();
  EXPECT_EQ(world.metrics.Get().turns_parked, 0);
  EXPECT_EQ(world.metrics.Get().distributions.stall_seconds.sum(), 3);
  world.Run();
  EXPECT_EQ(world.metrics.Get().turns_parked, 1);
  world.fake_clock.Advance(absl::Seconds(2));
  turn.cancel->Cancel(CancelToken::Why::kCancelled);
  world.Run();
  const Distributions d = world.metrics.Get().distributions;
  EXPECT_EQ(d.stall_seconds.count(), 2);
  EXPECT_EQ(d.stall_seconds.sum(), 5);
  world.ExpectAtRest();
}

WorldOptions OneSlotOneByOne() {
  WorldOptions options = OneByOne();
  options.runner.slots = 1;
  return options;
}

// "s0" with some tokens has left the only slot for "s1".
void MoveOut(World& world) {
  for (const char* id : {"s0", "s1"}) {
    world.CreateSession(id);
    world.Submit(id, TurnKind::kAppend, World::SomeIds(8));
    world.Run();
    world.fake_clock.Advance(absl::Seconds(20));
  }
}

TEST(SchedulerMetrics, ASessionThatMovesOutHasBeenIdle) {
  World world(OneSlotOneByOne());
  MoveOut(world);
  const Distributions d = world.metrics.Get().distributions;
  EXPECT_EQ(d.idle_before_evict_seconds.count(), 1);
  EXPECT_EQ(d.idle_before_evict_seconds.sum(), 20);
  world.ExpectAtRest();
}

TEST(SchedulerMetrics, ASessionThatMovesInIsARestore) {
  World world(OneSlotOneByOne());
  MoveOut(world);
  world.ExpectHealthy("s0");
  const Snapshot s = world.metrics.Get();
  EXPECT_EQ(s.image_restores_ok, 1);
  EXPECT_EQ(s.image_restores_failed, 0);
  EXPECT_EQ(s.rebuilds_ok, 0);
  EXPECT_EQ(s.distributions.restore_seconds.count(), 1);
  world.ExpectAtRest();
}

TEST(SchedulerMetrics, ABadImageIsAFailedRestoreAndThenARebuild) {
  World world(OneSlotOneByOne());
  MoveOut(world);
  world.runner->FailNextImport(absl::DataLossError("checksum"));
  world.Generate("s0", {1}, 3);
  world.Run();
  EXPECT_EQ(world.metrics.Get().image_restores_failed, 1);
  EXPECT_EQ(world.metrics.Get().distributions.restore_seconds.count(), 0);
  // A score commits nothing: the state is lost again.
  world.Submit("s0", TurnKind::kScore, {1, 2});
  world.Run();
  EXPECT_EQ(world.metrics.Get().rebuilds_failed, 1);
  world.ExpectHealthy("s0");
  const Snapshot s = world.metrics.Get();
  EXPECT_EQ(s.rebuilds_ok, 1);
  EXPECT_EQ(s.image_restores_ok, 0);
  EXPECT_GT(s.rows_rebuild, 0);
  world.ExpectAtRest();
}

}  // namespace
}  // namespace txl
