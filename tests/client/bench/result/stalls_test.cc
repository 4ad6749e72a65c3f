#include "client/bench/result/stalls.h"

#include <gtest/gtest.h>

#include "tests/client/bench/turns.h"

namespace txl::bench {
namespace {

constexpr Nanos kMs = kNanosPerSecond / 1000;

// A token every 10 ms within [from, to).
void Flow(Timeline* tokens, Nanos from, Nanos to) {
  for (Nanos at = from; at < to; at += 10 * kMs) tokens->Add(at, 1);
}

TEST(Stalls, AreTimesWithoutATokenWhileTurnsRan) {
  Timeline tokens;
  Flow(&tokens, 0, 1000 * kMs);
  Flow(&tokens, 1800 * kMs, 3000 * kMs);
  const auto stalls = FindStalls(tokens, {OkTurn(0, 3000 * kMs)}, 0, 300 * kMs);
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_EQ(stalls[0].start, 1000 * kMs);
  EXPECT_EQ(stalls[0].length, 800 * kMs);
  EXPECT_EQ(stalls[0].hit, 1);
}

TEST(Stalls, AreNotTimesInWhichNothingWasAsked) {
  Timeline tokens;
  Flow(&tokens, 0, 1000 * kMs);
  Flow(&tokens, 5000 * kMs, 6000 * kMs);
  const std::vector<TurnRecord> turns = {OkTurn(0, 1000 * kMs),
                                         OkTurn(4900 * kMs, 1100 * kMs)};
  EXPECT_TRUE(FindStalls(tokens, turns, 0, 300 * kMs).empty());
}

TEST(Stalls, BelowTheThresholdAreNone) {
  Timeline tokens;
  Flow(&tokens, 0, 1000 * kMs);
  Flow(&tokens, 1290 * kMs, 2000 * kMs);
  const std::vector<TurnRecord> turns = {OkTurn(0, 2000 * kMs)};
  EXPECT_TRUE(FindStalls(tokens, turns, 0, 300 * kMs).empty());
  EXPECT_EQ(FindStalls(tokens, turns, 0, 290 * kMs).size(), 1u);
}

TEST(Stalls, HitTheTurnsThatWereDueOrRanInThem) {
  Timeline tokens;
  Flow(&tokens, 0, 1000 * kMs);
  Flow(&tokens, 2000 * kMs, 3000 * kMs);
  const std::vector<TurnRecord> turns = {
      OkTurn(0, 500 * kMs),            // over before
      OkTurn(100 * kMs, 2500 * kMs),   // runs through it
      OkTurn(1500 * kMs, 1000 * kMs),  // due in it
      OkTurn(2100 * kMs, 100 * kMs),   // due after it
  };
  EXPECT_EQ(FindStalls(tokens, turns, 0, 300 * kMs).at(0).hit, 2);
  // Those of the warm-up are not counted.
  EXPECT_EQ(FindStalls(tokens, turns, 1000 * kMs, 300 * kMs).at(0).hit, 1);
}

TEST(Stalls, ReachToTheEndOfTheLastTurnAndComeLongestFirst) {
  Timeline tokens;
  Flow(&tokens, 0, 1000 * kMs);
  Flow(&tokens, 1400 * kMs, 2000 * kMs);
  const auto stalls = FindStalls(tokens, {OkTurn(0, 5000 * kMs)}, 0, 300 * kMs);
  ASSERT_EQ(stalls.size(), 2u);
  EXPECT_EQ(stalls[0].start, 2000 * kMs);
  EXPECT_EQ(stalls[0].length, 3000 * kMs);
  EXPECT_EQ(stalls[1].length, 400 * kMs);
}

TEST(Stalls, OfNoTurnsAreNone) {
  EXPECT_TRUE(FindStalls(Timeline(), {}, 0, kMs).empty());
}

TEST(StallThreshold, IsFarAboveWhatIsUsual) {
  EXPECT_EQ(StallThreshold(0, 0), 250 * kMs);
  EXPECT_EQ(StallThreshold(60 * kMs, 0), 600 * kMs);
  EXPECT_EQ(StallThreshold(60 * kMs, 400 * kMs), 800 * kMs);
}

}  // namespace
}  // namespace txl::bench
