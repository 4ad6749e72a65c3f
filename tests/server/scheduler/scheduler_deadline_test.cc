// A deadline that would pass before its turn begins is told at once.

#include <vector>

#include "gtest/gtest.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

constexpr absl::Duration kStep = absl::Milliseconds(10);

class SchedulerDeadline : public ::testing::Test {
 protected:
  SchedulerDeadline() : world_(Options()) {}

  static WorldOptions Options() {
    WorldOptions options = OneSlot();
    options.runner.depth = 1;
    return options;
  }
  // Steps of 10 ms each.
  void RunSteps(int steps) {
    for (int i = 0; i < steps; ++i) {
      world_.Step();
      world_.fake_clock.Advance(kStep);
    }
  }
  TestTurn Generate(int tokens, absl::Duration left, int priority = 0) {
    return world_.Generate("", World::SomeIds(3), tokens, [&](Turn& turn) {
      turn.deadline = world_.fake_clock.Monotonic() + left;
      turn.priority = priority;
    });
  }

  World world_;
};

TEST_F(SchedulerDeadline, WithoutAMeasuredRateNobodyIsRefused) {
  const TestTurn running = Generate(400, absl::Hours(1));
  RunSteps(1);
  const TestTurn next = Generate(400, absl::Hours(1));
  const TestTurn hasty = Generate(5, absl::Milliseconds(1));
  EXPECT_TRUE(hasty.submitted.ok());
  RunSteps(2);
  EXPECT_EQ(Outcome(hasty.sink->failed()),
            "DEADLINE_EXCEEDED DEADLINE_EXCEEDED");
  world_.Run();
}

TEST_F(SchedulerDeadline, OneThatWouldPassBeforeTheTurnBeginsIsRefused) {
  std::vector<TestTurn> turns;
  // Turns wait throughout: each is taken as the one before it ends.
  for (int i = 0; i < 60; ++i) turns.push_back(Generate(50, absl::Hours(1)));
  RunSteps(50 * 40);
  // About 20 turns of 50 tokens wait: ten seconds at 100 a second.
  EXPECT_EQ(Outcome(Generate(5, absl::Seconds(2)).submitted),
            "DEADLINE_EXCEEDED DEADLINE_UNREACHABLE");
  // With a factor of two it could begin in time.
  EXPECT_TRUE(Generate(5, absl::Seconds(8)).submitted.ok());
  // Urgent ones wait behind none of them.
  EXPECT_TRUE(Generate(5, absl::Milliseconds(100), 9).submitted.ok());
  world_.Run();
  world_.ExpectAtRest();
}

TEST_F(SchedulerDeadline, ATurnThatDoesNotWaitIsNotRefused) {
  std::vector<TestTurn> turns;
  for (int i = 0; i < 6; ++i) turns.push_back(Generate(50, absl::Hours(1)));
  RunSteps(400);
  world_.Run();
  const TestTurn alone = Generate(5, absl::Milliseconds(1));
  EXPECT_TRUE(alone.submitted.ok());
  world_.Run();
  EXPECT_TRUE(alone.sink->finished().has_value());
}

}  // namespace
}  // namespace txl
