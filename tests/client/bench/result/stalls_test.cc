#include "client/bench/result/stalls.h"

#include <gtest/gtest.h>

#include "tests/client/bench/turns.h"

namespace txl::bench {
namespace {

constexpr Nanos kMillisecond = kNanosPerSecond / 1000;

// A token every 10 ms within [from, to).
void Flow(Timeline* tokens, Nanos from, Nanos to) {
  for (Nanos at = from; at < to; at += 10 * kMillisecond) tokens->Add(at, 1);
}

TEST(Stalls, AreTimesWithoutATokenWhileTurnsRan) {
  Timeline tokens;
  Flow(&tokens, 0, 1000 * kMillisecond);
  Flow(&tokens, 1800 * kMillisecond, 3000 * kMillisecond);
  const auto stalls = FindStalls(tokens, {OkTurn(0, 3000 * kMillisecond)}, 0,
                                 300 * kMillisecond);
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_EQ(stalls[0].start, 1000 * kMillisecond);
  EXPECT_EQ(stalls[0].length, 800 * kMillisecond);
  EXPECT_EQ(stalls[0].hit, 1);
}

TEST(Stalls, AreNotTimesInWhichNothingWasAsked) {
  Timeline tokens;
  Flow(&tokens, 0, 1000 * kMillisecond);
  Flow(&tokens, 5000 * kMillisecond, 6000 * kMillisecond);
  const std::vector<TurnRecord> turns = {
      OkTurn(0, 1000 * kMillisecond),
      OkTurn(4900 * kMillisecond, 1100 * kMillisecond)};
  EXPECT_TRUE(FindStalls(tokens, turns, 0, 300 * kMillisecond).empty());
}

TEST(Stalls, BelowTheThresholdAreNone) {
  Timeline tokens;
  Flow(&tokens, 0, 1000 * kMillisecond);
  Flow(&tokens, 1290 * kMillisecond, 2000 * kMillisecond);
  const std::vector<TurnRecord> turns = {OkTurn(0, 2000 * kMillisecond)};
  EXPECT_TRUE(FindStalls(tokens, turns, 0, 300 * kMillisecond).empty());
  EXPECT_EQ(FindStalls(tokens, turns, 0, 290 * kMillisecond).size(), 1u);
}

TEST(Stalls, HitTheTurnsThatWereDueOrRanInThem) {
  Timeline tokens;
  Flow(&tokens, 0, 1000 * kMillisecond);
  Flow(&tokens, 2000 * kMillisecond, 3000 * kMillisecond);
  const std::vector<TurnRecord> turns = {
      OkTurn(0, 500 * kMillisecond),                     // over before
      OkTurn(100 * kMillisecond, 2500 * kMillisecond),   // runs through it
      OkTurn(1500 * kMillisecond, 1000 * kMillisecond),  // due in it
      OkTurn(2100 * kMillisecond, 100 * kMillisecond),   // due after it
  };
  EXPECT_EQ(FindStalls(tokens, turns, 0, 300 * kMillisecond).at(0).hit, 2);
  // Those of the warm-up are not counted.
  EXPECT_EQ(FindStalls(tokens, turns, 1000 * kMillisecond, 300 * kMillisecond)
                .at(0)
                .hit,
            1);
}

TEST(Stalls, ReachToTheEndOfTheLastTurnAndComeLongestFirst) {
  Timeline tokens;
  Flow(&tokens, 0, 1000 * kMillisecond);
  Flow(&tokens, 1400 * kMillisecond, 2000 * kMillisecond);
  const auto stalls = FindStalls(tokens, {OkTurn(0, 5000 * kMillisecond)}, 0,
                                 300 * kMillisecond);
  ASSERT_EQ(stalls.size(), 2u);
  EXPECT_EQ(stalls[0].start, 2000 * kMillisecond);
  EXPECT_EQ(stalls[0].length, 3000 * kMillisecond);
  EXPECT_EQ(stalls[1].length, 400 * kMillisecond);
}

TEST(Stalls, OfNoTurnsAreNone) {
  EXPECT_TRUE(FindStalls(Timeline(), {}, 0, kMillisecond).empty());
}

TEST(StallThreshold, IsFarAboveWhatIsUsual) {
  EXPECT_EQ(StallThreshold(0, 0), 250 * kMillisecond);
  EXPECT_EQ(StallThreshold(60 * kMillisecond, 0), 600 * kMillisecond);
  EXPECT_EQ(StallThreshold(60 * kMillisecond, 400 * kMillisecond),
            800 * kMillisecond);
}

}  // namespace
}  // namespace txl::bench
