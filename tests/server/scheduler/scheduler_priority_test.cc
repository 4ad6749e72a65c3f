// More urgent turns go first, and nobody waits for ever.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

constexpr absl::Duration kAge = absl::Seconds(5);  // SchedulerOptions

TestTurn Generate(World& world, const Ids& input, int max_tokens, int priority,
                  TenantAccount* account = nullptr) {
  return world.Generate("", input, max_tokens, [priority, account](Turn& turn) {
    turn.priority = priority;
    turn.account = account;
  });
}

int TokensOf(const TestTurn& turn) {
  return static_cast<int>(turn.sink->tokens().size());
}

// Steps until the turn has so many tokens.
void StepUntil(World& world, const TestTurn& turn, int tokens) {
  for (int i = 0; i < 1000 && TokensOf(turn) < tokens; ++i) world.Step();
  ASSERT_GE(TokensOf(turn), tokens);
}

class SchedulerPriority : public ::testing::TestWithParam<int> {
 protected:
  WorldOptions Options() {
    WorldOptions options = OneSlot();
    options.runner.depth = GetParam();
    return options;
  }
  // The model's own tokens, however often the turn stood back.
  void ExpectExact(World& world, const TestTurn& turn, const Ids& input,
                   int tokens) {
    const Ids all = world.runner->Continue(input, tokens);
    EXPECT_EQ(turn.sink->ids(), Ids(all.end() - tokens, all.end()));
    EXPECT_EQ(turn.sink->violations(), std::vector<std::string>());
  }
};

TEST_P(SchedulerPriority, AHigherNumberGoesFirstAndEqualOnesAsTheyCame) {
  World world(Options());
  const TestTurn running = Generate(world, World::SomeIds(3), 4, 9);
  world.Step();
  std::vector<TestTurn> waiting;
  for (const int priority : {1, 5, 5, 9}) {
    waiting.push_back(Generate(world, World::SomeIds(3), 4, priority));
  }
  std::vector<int> order;
  for (int i = 0; i < 200; ++i) {
    world.Step();
    for (int turn = 0; turn < 4; ++turn) {
      const bool begun = waiting[turn].sink->started().has_value();
      if (!begun || std::count(order.begin(), order.end(), turn) > 0) continue;
      order.push_back(turn);
    }
  }
  EXPECT_EQ(order, (std::vector<int>{3, 1, 2, 0}));
}

TEST_P(SchedulerPriority, ALowerTurnGivesItsSlotUpAndLosesNoToken) {
  World world(Options());
  const Ids input = World::SomeIds(5);
  const TestTurn low = Generate(world, input, 40, 0);
  StepUntil(world, low, 10);
  const TestTurn high = Generate(world, World::SomeIds(4), 30, 1);
  StepUntil(world, high, 30);
  EXPECT_LT(TokensOf(low), 10 + 4);
  EXPECT_EQ(world.metrics.Get().turns_displaced, 1);
  world.Run();
  ExpectExact(world, low, input, 40);
  ExpectExact(world, high, World::SomeIds(4), 30);
  world.ExpectAtRest();
}

TEST_P(SchedulerPriority, AnEqualTurnAndAnotherTenantsKeepTheirSlot) {
  World world(Options());
  TenantAccount other("other", {}, -1, absl::ZeroDuration());
  const TestTurn running = Generate(world, World::SomeIds(5), 40, 3);
  StepUntil(world, running, 5);
  const TestTurn equal = Generate(world, World::SomeIds(4), 5, 3);
  const TestTurn foreign = Generate(world, World::SomeIds(4), 5, 9, &other);
  StepUntil(world, running, 40);
  EXPECT_EQ(TokensOf(equal), 0);
  EXPECT_EQ(TokensOf(foreign), 0);
  world.Run();
  EXPECT_EQ(world.metrics.Get().turns_displaced, 0);
  world.ExpectAtRest();
}

TEST_P(SchedulerPriority, WhatHasWaitedForLongIsAsUrgent) {
  World world(Options());
  const TestTurn old = Generate(world, World::SomeIds(5), 60, 0);
  StepUntil(world, old, 5);
  world.fake_clock.Advance(9 * kAge);
  const TestTurn urgent = Generate(world, World::SomeIds(4), 5, 9);
  StepUntil(world, old, 60);
  EXPECT_EQ(TokensOf(urgent), 0);
  world.Run();
  EXPECT_TRUE(urgent.sink->finished().has_value());
}

// The wait of a turn of priority p is bounded by 9 - p times the age, and by
// what was taken on until then, however many urgent turns keep coming.
TEST_P(SchedulerPriority, UrgentTurnsWithoutEndDoNotKeepALowOneWaiting) {
  World world(Options());
  std::vector<TestTurn> urgent = {Generate(world, World::SomeIds(3), 10, 9)};
  const TestTurn low = Generate(world, World::SomeIds(3), 10, 2);
  std::optional<absl::Duration> begun;
  const absl::Duration came = world.fake_clock.Monotonic();
  while (!low.sink->ended() &&
         world.fake_clock.Monotonic() - came < absl::Minutes(2)) {
    while (urgent.back().sink->started().has_value()) {
      urgent.push_back(Generate(world, World::SomeIds(3), 10, 9));
      world.Step();
    }
    world.Step();
    world.fake_clock.Advance(absl::Milliseconds(100));
    if (!begun.has_value() && low.sink->started().has_value()) {
      begun = world.fake_clock.Monotonic() - came;
    }
  }
  ASSERT_TRUE(begun.has_value());
  EXPECT_GE(*begun, 7 * kAge - absl::Seconds(2));
  // One turn of ten tokens runs at that time, and one that is as old.
  EXPECT_LE(*begun, 7 * kAge + absl::Seconds(4));
  world.Run();
  EXPECT_TRUE(low.sink->finished().has_value());
  world.ExpectAtRest();
}

TEST_P(SchedulerPriority, WhereNoTurnMayBeWithoutASlotNoneIsAsked) {
  WorldOptions options = Options();
  options.scheduler.max_parked_turns = 0;
  World world(options);
  const TestTurn low = Generate(world, World::SomeIds(5), 40, 0);
  StepUntil(world, low, 5);
  const TestTurn high = Generate(world, World::SomeIds(4), 5, 9);
  world.Run();
  EXPECT_TRUE(low.sink->finished().has_value());
  EXPECT_TRUE(high.sink->finished().has_value());
  EXPECT_EQ(world.metrics.Get().turns_displaced, 0);
}

TEST_P(SchedulerPriority, ATurnThatWasAskedGoesOnWhenNobodyWantsItsSlot) {
  World world(Options());
  const TestTurn low = Generate(world, World::SomeIds(5), 40, 0);
  StepUntil(world, low, 5);
  const TestTurn high = Generate(world, World::SomeIds(4), 5, 9);
  world.Step();
  high.cancel->Cancel(CancelToken::Why::kCancelled);
  world.Run();
  ExpectExact(world, low, World::SomeIds(5), 40);
  world.ExpectAtRest();
}

INSTANTIATE_TEST_SUITE_P(Depth, SchedulerPriority, ::testing::Values(1, 2));

}  // namespace
}  // namespace txl
