// A tenant's quotas hold for its turns, to the token.

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

class SchedulerQuota : public ::testing::TestWithParam<int> {
 protected:
  WorldOptions Options(int slots) {
    WorldOptions options;
    options.runner.slots = slots;
    options.runner.depth = GetParam();
    options.scheduler.slow_reader_limit = absl::Hours(1);
    options.scheduler.queue_limit = absl::Hours(1);
    return options;
  }
  TenantAccount* Limit(const TenantLimits& limits) {
    account_ = std::make_unique<TenantAccount>("t", limits, 0, start_);
    return account_.get();
  }
  TestTurn Generate(World& world, int max_tokens, int prompt = 3) {
    return world.Generate(
        "", World::SomeIds(prompt, salt_++), max_tokens,
        [this](Turn& turn) { turn.account = account_.get(); });
  }
  static int64_t TokensOf(const std::vector<TestTurn>& turns) {
    int64_t tokens = 0;
    for (const TestTurn& turn : turns) {
      tokens += static_cast<int64_t>(turn.sink->tokens().size());
    }
    return tokens;
  }
  static void Settle(World& world) {
    for (int i = 0; i < 300; ++i) world.Step();
  }

  const absl::Duration start_ = FakeClock().Monotonic();
  std::unique_ptr<TenantAccount> account_;
  int salt_ = 0;
};

TEST_P(SchedulerQuota, SixtyFourTurnsGetNoTokenMoreThanTheQuota) {
  TenantLimits limits;
  limits.tokens_out_per_minute = 600;
  Limit(limits);
  World world(Options(64));
  std::vector<TestTurn> turns;
  for (int i = 0; i < 64; ++i) turns.push_back(Generate(world, 40));
  Settle(world);
  EXPECT_EQ(TokensOf(turns), 600);
  world.fake_clock.Advance(absl::Milliseconds(99));
  Settle(world);
  EXPECT_EQ(TokensOf(turns), 600);
  world.fake_clock.Advance(absl::Milliseconds(1));
  Settle(world);
  EXPECT_EQ(TokensOf(turns), 601);
  world.fake_clock.Advance(absl::Seconds(7));
  Settle(world);
  EXPECT_EQ(TokensOf(turns), 671);
  // Nobody has lost anything.
  for (int minute = 0; minute < 4; ++minute) {
    world.fake_clock.Advance(absl::Minutes(1));
    Settle(world);
  }
  for (const TestTurn& turn : turns) {
    EXPECT_EQ(turn.sink->tokens().size(), 40u);
    EXPECT_TRUE(turn.sink->finished().has_value());
  }
  world.ExpectAtRest();
}

TEST_P(SchedulerQuota, ATurnThatIsPausedGivesItsSlotToWhoeverMayGoOn) {
  TenantLimits limits;
  limits.tokens_out_per_minute = 30;
  Limit(limits);
  World world(Options(1));
  const TestTurn paused = Generate(world, 40);
  Settle(world);
  EXPECT_EQ(paused.sink->tokens().size(), 30u);
  const TestTurn other = world.Generate("", World::SomeIds(4), 50);
  world.Run();
  EXPECT_TRUE(other.sink->finished().has_value());
  EXPECT_EQ(world.metrics.Get().turns_displaced, 1);
  world.fake_clock.Advance(absl::Minutes(1));
  world.Run();
  EXPECT_TRUE(paused.sink->finished().has_value());
  const Ids all = world.runner->Continue(World::SomeIds(3, 0), 40);
  EXPECT_EQ(paused.sink->ids(), Ids(all.end() - 40, all.end()));
  world.ExpectAtRest();
}

TEST_P(SchedulerQuota, ATurnWaitsInTheQueueUntilItsTenantHasATokenAgain) {
  TenantLimits limits;
  limits.tokens_out_per_minute = 10;
  Limit(limits);
  World world(Options(4));
  const TestTurn first = Generate(world, 10);
  world.Run();
  EXPECT_TRUE(first.sink->finished().has_value());
  const TestTurn second = Generate(world, 5);
  Settle(world);
  EXPECT_FALSE(second.sink->started().has_value());
  // Turns that sample nothing need none.
  const TestTurn score =
      world.Submit("", TurnKind::kScore, World::SomeIds(4),
                   [this](Turn& turn) { turn.account = account_.get(); });
  world.Run();
  EXPECT_TRUE(score.sink->finished().has_value());
  world.fake_clock.Advance(absl::Seconds(30));
  world.Run();
  EXPECT_TRUE(second.sink->finished().has_value());
  world.ExpectAtRest();
}

TEST_P(SchedulerQuota, TokensThatNobodyGotAreGivenBack) {
  TenantLimits limits;
  limits.tokens_out_per_minute = 100;
  Limit(limits);
  World world(Options(4));
  const TestTurn turn = Generate(world, 50);
  while (turn.sink->tokens().size() < 10) world.Step();
  turn.cancel->Cancel(CancelToken::Why::kCancelled);
  world.Run();
  EXPECT_EQ(account_->TokensOut(start_),
            100 - static_cast<int64_t>(turn.sink->tokens().size()));
}

TEST_P(SchedulerQuota, WhatATurnOfNobodyDoesNotGetIsNotGivenToATenant) {
  TenantLimits limits;
  limits.tokens_out_per_minute = 100;
  Limit(limits);
  World world(Options(4));
  const TestTurn nobodys = world.Generate("", World::SomeIds(3), 50);
  const TestTurn turn = Generate(world, 50);
  while (turn.sink->tokens().size() < 10) world.Step();
  world.runner->FailStep(static_cast<int64_t>(world.runner->plans().size()),
                         absl::InternalError("device"));
  world.Run();
  ASSERT_FALSE(nobodys.sink->failed().ok());
  ASSERT_FALSE(turn.sink->failed().ok());
  EXPECT_EQ(account_->TokensOut(start_),
            100 - static_cast<int64_t>(turn.sink->tokens().size()));
}

TEST_P(SchedulerQuota, TurnsAndTokensInAreRefusedAndComeBack) {
  TenantLimits limits;
  limits.turns = 2;
  limits.tokens_in_per_minute = 20;
  Limit(limits);
  World world(Options(1));
  const TestTurn first = Generate(world, 5, 8);
  const TestTurn second = Generate(world, 5, 8);
  EXPECT_EQ(Outcome(Generate(world, 5).submitted), "RESOURCE_EXHAUSTED QUOTA");
  second.cancel->Cancel(CancelToken::Why::kCancelled);
  world.Step();
  // It waited and fed nothing: 12 of 20 are left.
  const TestTurn third = Generate(world, 5, 12);
  EXPECT_TRUE(third.submitted.ok());
  world.Run();
  EXPECT_EQ(Outcome(Generate(world, 5).submitted), "RESOURCE_EXHAUSTED QUOTA");
  world.fake_clock.Advance(absl::Minutes(1));
  EXPECT_TRUE(Generate(world, 5, 20).submitted.ok());
  world.Run();
  world.ExpectAtRest();
}

TEST_P(SchedulerQuota, ALongTurnEndsByItsTenantsLimit) {
  TenantLimits limits;
  limits.longest_turn = absl::Seconds(10);
  Limit(limits);
  World world(Options(1));
  const TestTurn turn = Generate(world, 500);
  for (int i = 0; i < 5; ++i) world.Step();
  world.fake_clock.Advance(absl::Seconds(10));
  world.Run();
  EXPECT_EQ(Outcome(turn.sink->failed()), "RESOURCE_EXHAUSTED QUOTA");
  EXPECT_EQ(GetErrorDetails(turn.sink->failed()).metadata.at("quota"),
            "longest_turn");
}

TEST_P(SchedulerQuota, WhatTenantsHadIsWhatEverybodyHad) {
  WorldOptions options = Options(2);
  options.scheduler.max_queued_calls = 3;
  World world(options);
  TenantLimits limits;
  limits.turns = 5;
  account_ = std::make_unique<TenantAccount>(
      "t", limits,
      (world.metrics.AddTenant("other"), world.metrics.AddTenant("t")), start_);
  std::vector<TestTurn> turns;
  for (int i = 0; i < 12; ++i) {
    turns.push_back(Generate(world, 5));
    turns.push_back(world.Generate("", World::SomeIds(2, i), 4));
    world.Step();
  }
  world.Run();
  const Snapshot s = world.metrics.Get();
  ASSERT_EQ(s.tenants.size(), 2u);
  EXPECT_GT(s.tenants[0].tokens_delivered, 0);
  EXPECT_GT(s.tenants[1].tokens_delivered, 0);
  EXPECT_EQ(s.tenants[1].tokens_delivered % 5, 0);
  EXPECT_EQ(s.tenants[1].turns_active, 0);
  world.ExpectAtRest();  // the laws, with the sums over tenants
}

TEST_P(SchedulerQuota, ATurnEndsInTheCountersThatItBeganIn) {
  World world(Options(2));
  const int32_t others = world.metrics.AddTenant("other");
  const int32_t own = world.metrics.AddTenant("t");
  account_ =
      std::make_unique<TenantAccount>("t", TenantLimits(), others, start_);
  const TestTurn before = Generate(world, 5);
  world.Step();
  account_->CountAt(own);
  const TestTurn after = Generate(world, 3);
  world.Run();
  const Snapshot s = world.metrics.Get();
  for (const int32_t place : {others, own}) {
    EXPECT_EQ(s.tenants[place].turns_started, 1);
    EXPECT_EQ(s.tenants[place].turns_active, 0);
  }
  EXPECT_EQ(s.tenants[others].tokens_delivered, 5);
  EXPECT_EQ(s.tenants[own].tokens_delivered, 3);
  world.ExpectAtRest();
}

INSTANTIATE_TEST_SUITE_P(Depth, SchedulerQuota, ::testing::Values(1, 2));

}  // namespace
}  // namespace txl
