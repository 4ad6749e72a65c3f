// The load engine on simulated time: what it sends when, and what it writes
// down.
#include "client/bench/run/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/client/bench/simulated_run.h"

namespace txl::bench {
namespace {

using ::testing::Each;
using ::testing::Field;

SimulatedServer Fixed(Nanos first_token, Nanos gap) {
  SimulatedServer server;
  server.first_token = [=](int64_t) { return first_token; };
  server.gap = [=](int64_t, int64_t) { return gap; };
  return server;
}

TEST(OpenLoop, SendsAtTheScheduleWhateverTheServerDoes) {
  // 100 a second for a second, each of 3 s: all run at once.
  const SimulatedResult run =
      Simulate(ConstantRate(100, 1), Fixed(3 * kNanosPerSecond, 0));
  ASSERT_EQ(run.result.turns.size(), 100u);
  EXPECT_EQ(run.most_running, 100);
  for (int64_t i = 0; i < 100; ++i) {
    const TurnRecord& turn = run.result.turns[i];
    EXPECT_EQ(turn.conversation, i);
    EXPECT_EQ(turn.scheduled, i * 10 * kMs);
    EXPECT_EQ(turn.sent, turn.scheduled);
    EXPECT_EQ(turn.ToFirstToken(), 3000 * kMs);
    EXPECT_EQ(turn.outcome, Outcome::kOk);
    EXPECT_EQ(turn.problem, "");
  }
}

TEST(OpenLoop, WritesDownEveryTimeOfATurn) {
  RunOptions options = ConstantRate(1, 1);
  options.workload.max_tokens = Distribution::Fixed(4);
  SimulatedServer server = Fixed(50 * kMs, 0);
  server.gap = [](int64_t, int64_t token) { return token * 10 * kMs; };
  const SimulatedResult run = Simulate(options, server);
  ASSERT_EQ(run.result.turns.size(), 1u);
  const TurnRecord& turn = run.result.turns[0];
  EXPECT_EQ(turn.first_token, 50 * kMs);
  EXPECT_EQ(turn.last_token, 110 * kMs);
  EXPECT_EQ(turn.end, 110 * kMs);
  EXPECT_EQ(turn.longest_gap, 30 * kMs);
  EXPECT_EQ(turn.PerToken(), 20 * kMs);
  EXPECT_EQ(turn.tokens, 4);
  EXPECT_EQ(run.result.gaps.count(), 3);
  EXPECT_EQ(run.result.gaps.max(), 30 * kMs);
  EXPECT_EQ(run.result.tokens.Between(0, kNanosPerSecond), 4);
}

TEST(OpenLoop, StopsAtItsNumberOfRequestsToo) {
  RunOptions options = ConstantRate(100, 10);
  options.requests = 7;
  EXPECT_EQ(Simulate(options, Fixed(0, 0)).result.turns.size(), 7u);
}

TEST(OpenLoop, DoesNotSendWhatIsDueWhileTooManyRun) {
  RunOptions options = ConstantRate(10, 1);
  options.max_running = 4;
  const SimulatedResult run = Simulate(options, Fixed(2 * kNanosPerSecond, 0));
  EXPECT_EQ(run.requests.size(), 4u);
  ASSERT_EQ(run.result.turns.size(), 10u);
  int64_t not_sent = 0;
  for (const TurnRecord& turn : run.result.turns) {
    not_sent += turn.outcome == Outcome::kNotSent && turn.status == "NOT_SENT";
  }
  EXPECT_EQ(not_sent, 6);
}

TEST(OpenLoop, WhatStillRunsAfterTheDrainIsIncomplete) {
  RunOptions options = ConstantRate(10, 1);
  options.drain_seconds = 2;
  const SimulatedResult run =
      Simulate(options, Fixed(3600 * kNanosPerSecond, 0));
  EXPECT_THAT(run.result.turns,
              Each(Field(&TurnRecord::outcome, Outcome::kIncomplete)));
  EXPECT_EQ(run.result.turns.size(), 10u);
  EXPECT_EQ(run.result.end, 3 * kNanosPerSecond);
}

TEST(OpenLoop, DriversShareTheArrivalsOfOneSchedule) {
  RunOptions options = ConstantRate(50, 2);
  options.arrivals = ArrivalKind::kPoisson;
  std::set<std::pair<int64_t, Nanos>> all;
  for (const TurnRecord& turn : Simulate(options, Fixed(0, 0)).result.turns) {
    all.emplace(turn.conversation, turn.scheduled);
  }
  SharedRun shared{.options = options,
                   .vocabulary = 256,
                   .session_prefix = "s-",
                   .start = 0};
  std::set<std::pair<int64_t, Nanos>> parts;
  size_t turns = 0;
  for (int32_t i = 0; i < 3; ++i) {
    SimulatedTarget target{Fixed(0, 0)};
    for (const TurnRecord& turn : Driver(&shared, &target, i, 3).Run().turns) {
      parts.emplace(turn.conversation, turn.scheduled);
      ++turns;
    }
  }
  EXPECT_EQ(parts, all);
  EXPECT_EQ(turns, all.size());
}

TEST(OpenLoop, ATurnIsTheSameInEveryRunAndUnderEverySchedule) {
  RunOptions slow = ConstantRate(10, 1);
  RunOptions fast = ConstantRate(1000, 0.01);
  const SimulatedResult a = Simulate(slow, Fixed(kMs, 0));
  const SimulatedResult b = Simulate(fast, Fixed(0, 0));
  ASSERT_EQ(a.requests.size(), 10u);
  ASSERT_EQ(b.requests.size(), 10u);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(a.requests[i].SerializeAsString(),
              b.requests[i].SerializeAsString());
  }
}

RunOptions Streams(int32_t streams, int64_t requests) {
  RunOptions options = ConstantRate(1, 0);
  options.mode = Mode::kClosed;
  options.streams = streams;
  options.requests = requests;
  return options;
}

TEST(ClosedLoop, KeepsItsStreamsBusyAndNoMore) {
  const SimulatedResult run = Simulate(Streams(4, 20), Fixed(100 * kMs, 0));
  EXPECT_EQ(run.most_running, 4);
  EXPECT_EQ(run.result.turns.size(), 20u);
  EXPECT_EQ(run.result.end, 500 * kMs);  // 5 rounds
  std::set<int64_t> seen;
  for (const TurnRecord& turn : run.result.turns)
    seen.insert(turn.conversation);
  EXPECT_EQ(seen.size(), 20u);
}

TEST(ClosedLoop, ARampStartsTheStreamsOneAfterTheOther) {
  RunOptions options = Streams(4, 0);
  options.seconds = 1;
  options.rate.ramp_seconds = 0.4;
  const SimulatedResult run = Simulate(options, Fixed(3 * kNanosPerSecond, 0));
  ASSERT_EQ(run.result.turns.size(), 4u);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(run.result.turns[i].scheduled, i * 100 * kMs);
  }
}

TEST(ClosedLoop, PausesAfterARefusalInsteadOfSpinning) {
  SimulatedServer server = Fixed(kNanosPerSecond, 0);
  server.slots = 1;
  server.queue = 0;
  RunOptions options = Streams(2, 0);
  options.seconds = 1;
  const SimulatedResult run = Simulate(options, server);
  // One stream runs, the other is refused every 10 ms.
  EXPECT_EQ(run.result.turns.size(), 101u);
}

TEST(Conversations, AreSessionsWhoseTurnsWaitForTheirThinkTime) {
  RunOptions options = ConstantRate(1, 1);
  options.seconds = 60;
  options.requests = 1;
  options.workload.turns = Distribution::Fixed(3);
  options.workload.think_seconds = Distribution::Fixed(5);
  SimulatedServer server = Fixed(100 * kMs, 0);
  server.session_call = 7 * kMs;
  const SimulatedResult run = Simulate(options, server);
  ASSERT_EQ(run.result.turns.size(), 3u);
  Nanos due = 0;
  for (int64_t i = 0; i < 3; ++i) {
    const TurnRecord& turn = run.result.turns[i];
    EXPECT_EQ(turn.turn, i);
    EXPECT_EQ(turn.scheduled, due);
    EXPECT_EQ(turn.sent, due);
    // The first turn makes the session.
    EXPECT_EQ(turn.ToFirstToken(), (i == 0 ? 107 : 100) * kMs);
    EXPECT_EQ(turn.problem, "");  // positions go on from turn to turn
    due = turn.end + 5 * kNanosPerSecond;
    EXPECT_EQ(run.requests[i].session_id(), "s-0");
  }
  EXPECT_EQ(run.sessions_made, 1);
  EXPECT_EQ(run.sessions_left, 0);
}

TEST(Conversations, StartNoTurnAfterTheEndAndLeaveNoSession) {
  RunOptions options = ConstantRate(1, 1);
  options.workload.turns = Distribution::Fixed(3);
  options.workload.think_seconds = Distribution::Fixed(5);
  const SimulatedResult run = Simulate(options, Fixed(100 * kMs, 0));
  EXPECT_EQ(run.result.turns.size(), 1u);
  EXPECT_EQ(run.sessions_left, 0);
}

TEST(Clients, CancelTheirShareMidway) {
  RunOptions options = ConstantRate(1000, 1);
  options.workload.max_tokens = Distribution::Fixed(100);
  options.workload.cancel_share = 0.3;
  const SimulatedResult run = Simulate(options, Fixed(kMs, kMs));
  int64_t cancelled = 0;
  int64_t tokens = 0;
  for (const TurnRecord& turn : run.result.turns) {
    EXPECT_EQ(turn.outcome == Outcome::kCancelled, turn.cancels);
    EXPECT_EQ(turn.problem, "");
    if (!turn.cancels) continue;
    ++cancelled;
    tokens += turn.tokens;
    EXPECT_LT(turn.tokens, 100);
  }
  // Within five deviations of the share, and of the middle.
  EXPECT_NEAR(cancelled, 300, 5 * 14.5);
  EXPECT_NEAR(tokens / static_cast<double>(cancelled), 49.5, 5 * 29 / 17.0);
}

TEST(Clients, ThatCancelWhenTheEndIsOnItsWayHaveCancelled) {
  RunOptions options = ConstantRate(100, 1);
  options.workload.max_tokens = Distribution::Fixed(50);
  options.workload.cancel_share = 1;
  SimulatedServer server = Fixed(kMs, kMs);
  server.cancels_come_late = true;
  const SimulatedResult run = Simulate(options, server);
  ASSERT_EQ(run.result.turns.size(), 100u);
  for (const TurnRecord& turn : run.result.turns) {
    EXPECT_EQ(turn.outcome, Outcome::kCancelled);
    EXPECT_EQ(turn.status, "CANCELLED");
    EXPECT_EQ(turn.problem, "");
  }
}

TEST(Clients, ThatReadSlowlyTakeTheirTimeAtEachEvent) {
  RunOptions options = ConstantRate(1, 1);
  options.workload.max_tokens = Distribution::Fixed(10);
  options.workload.slow_share = 1;
  options.slow_read_seconds = 0.2;
  const SimulatedResult run = Simulate(options, Fixed(kMs, kMs));
  ASSERT_EQ(run.result.turns.size(), 1u);
  EXPECT_TRUE(run.result.turns[0].slow_reader);
  // A pause after each of Started, ten tokens and Finished.
  EXPECT_EQ(run.result.turns[0].end, 12 * 200 * kMs);
  EXPECT_EQ(run.result.gaps.count(), 0);
}

TEST(WarmUp, TurnsThatAreDueInItAreRunButTheirGapsDoNotCount) {
  RunOptions options = ConstantRate(10, 2);
  options.warmup_seconds = 1.5;
  options.workload.max_tokens = Distribution::Fixed(3);
  const SimulatedResult run = Simulate(options, Fixed(kMs, kMs));
  EXPECT_EQ(run.result.turns.size(), 20u);
  EXPECT_EQ(run.result.gaps.count(), 5 * 2);
}

TEST(ProgressOfARun, CountsAsItGoes) {
  RunOptions options = ConstantRate(10, 1);
  options.workload.max_tokens = Distribution::Fixed(3);
  SharedRun shared{.options = options,
                   .vocabulary = 256,
                   .session_prefix = "s-",
                   .start = 0};
  SimulatedTarget target{Fixed(kMs, kMs)};
  Driver(&shared, &target, 0, 1).Run();
  EXPECT_EQ(shared.progress.sent.load(), 10);
  EXPECT_EQ(shared.progress.ended.load(), 10);
  EXPECT_EQ(shared.progress.failed.load(), 0);
  EXPECT_EQ(shared.progress.tokens.load(), 30);
}

}  // namespace
}  // namespace txl::bench
