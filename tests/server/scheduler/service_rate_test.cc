#include "server/scheduler/service_rate.h"

#include <algorithm>
#include <deque>
#include <random>

#include "gtest/gtest.h"

namespace txl {
namespace {

constexpr absl::Duration kTenMilliseconds = absl::Milliseconds(10);

// So many steps of `tokens` each, one after the other.
void RunSteps(ServiceRate& rate, absl::Duration& now, int steps, int64_t tokens,
              bool waiting = true) {
  for (int i = 0; i < steps; ++i) {
    now += kTenMilliseconds;
    rate.NoteStep(tokens, waiting, now);
  }
}

TEST(ServiceRate, IsUnknownUntilTurnsHaveWaitedForAWindow) {
  ServiceRate rate;
  absl::Duration now = absl::Seconds(9);
  RunSteps(rate, now, 1000, 5, /*waiting=*/false);
  EXPECT_FALSE(rate.tokens_per_second().has_value());
  RunSteps(rate, now, 100, 5);
  EXPECT_FALSE(rate.tokens_per_second().has_value());
  RunSteps(rate, now, 1, 5);
  EXPECT_DOUBLE_EQ(*rate.tokens_per_second(), 500);
}

TEST(ServiceRate, LeavesOutTheTimeInWhichNobodyWaited) {
  ServiceRate rate;
  absl::Duration now = absl::Seconds(9);
  RunSteps(rate, now, 60, 5);
  RunSteps(rate, now, 300, 1, /*waiting=*/false);
  now += absl::Hours(1);
  RunSteps(rate, now, 60, 5);
  EXPECT_NEAR(*rate.tokens_per_second(), 500, 5);
}

TEST(ServiceRate, FollowsAFasterServerAtOnceAndASlowerOneByHalf) {
  ServiceRate rate;
  absl::Duration now = absl::Seconds(9);
  RunSteps(rate, now, 101, 5);
  RunSteps(rate, now, 100, 10);
  EXPECT_DOUBLE_EQ(*rate.tokens_per_second(), 1000);
  RunSteps(rate, now, 100, 2);
  EXPECT_DOUBLE_EQ(*rate.tokens_per_second(), 600);
  RunSteps(rate, now, 100, 2);
  EXPECT_DOUBLE_EQ(*rate.tokens_per_second(), 400);
}

TEST(ServiceRate, KnowsWhatTurnsGenerate) {
  ServiceRate rate;
  EXPECT_EQ(rate.Expected(100), 0);
  for (int i = 0; i < 200; ++i) rate.NoteTurn(40);
  EXPECT_NEAR(rate.Expected(100), 40, 0.01);
  EXPECT_EQ(rate.Expected(7), 7);
}

TEST(IsUnreachable, HasAFactorOfTwo) {
  EXPECT_FALSE(IsUnreachable(200, 100, absl::Seconds(1)));
  EXPECT_TRUE(IsUnreachable(201, 100, absl::Seconds(1)));
  EXPECT_FALSE(IsUnreachable(0, 100, absl::ZeroDuration()));
  EXPECT_TRUE(IsUnreachable(1, 100, absl::ZeroDuration()));
}

// A server that is never twice as fast as it was measured: what is refused
// would not have begun in time.
TEST(IsUnreachable, WhatIsRefusedWouldHaveBeenTooLate) {
  int refused = 0;
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    ServiceRate rate;
    absl::Duration now = absl::Seconds(5);
    const auto usual = static_cast<int64_t>(10 + random() % 100);
    RunSteps(rate, now, 150, usual);
    double tokens = 0;
    const int ahead = static_cast<int>(random() % 50);
    for (int i = 0; i <= ahead; ++i) tokens += 1 + random() % 300;
    const absl::Duration left = absl::Milliseconds(random() % 4000);
    if (!IsUnreachable(tokens, *rate.tokens_per_second(), left)) continue;
    ++refused;
    absl::Duration began;
    while (tokens > 0) {
      began += kTenMilliseconds;
      tokens -= static_cast<double>(random() % (2 * usual + 1));
    }
    EXPECT_GT(began, left) << "seed " << seed;
  }
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace txl
