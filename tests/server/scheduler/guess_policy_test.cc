#include <gtest/gtest.h>

#include "server/scheduler/guesser.h"

namespace txl {
namespace {

StepCost CostOf(double fixed, double stream, double guess) {
  StepCost cost;
  for (int i = 0; i < 400; ++i) {
    const int streams = 1 + i % 8;
    const int guesses = i % 5;
    cost.Note(streams, guesses, fixed + stream * streams + guess * guesses);
  }
  return cost;
}

TEST(GuessPolicyTest, AGuessHasToBeWorthWhatItCosts) {
  // A step of one stream takes 1, a guess 0.1 more: one that is right once in
  // ten times is worth it, but for the margin.
  const StepCost cost = CostOf(0.7, 0.3, 0.1);
  const double alone = GuessFloor(cost, 1);
  EXPECT_GT(alone, 0.1);
  EXPECT_LT(alone, 0.2);
}

TEST(GuessPolicyTest, CompanyRaisesTheFloor) {
  const StepCost cost = CostOf(0.7, 0.3, 0.1);
  double before = 0;
  for (const int streams : {1, 2, 4, 8, 32, 128}) {
    const double floor = GuessFloor(cost, streams);
    EXPECT_GT(floor, before);
    before = floor;
  }
  // Where a stream's row costs what a guess does, a full step has no room for
  // guesses, however likely they are.
  EXPECT_GE(GuessFloor(CostOf(0.7, 0.3, 0.3), 32), 1);
  EXPECT_LT(GuessFloor(CostOf(0.7, 0.3, 0.3), 1), 1);
}

TEST(GuessPolicyTest, LikelyGuessesShowWhatStepsCost) {
  EXPECT_EQ(GuessFloor(StepCost(), 3), 0.5);
}

TEST(GuessPolicyTest, StreamsWaitForTokensThatBringMore) {
  EXPECT_TRUE(WorthGuessing(0.2, 0.8));
  EXPECT_FALSE(WorthGuessing(0.2, 0.1));
  EXPECT_FALSE(WorthGuessing(1, 5));
}

TEST(GuessPolicyTest, TheScarcestThingLimitsTheGuesses) {
  const GuessRoom room = {.wanted = 8,
                          .rows = 20,
                          .spare_rows = 16,
                          .tokens_left = 30,
                          .events_left = 40};
  EXPECT_EQ(MostGuesses(room), 8);
  const auto with = [&](int64_t GuessRoom::*what, int64_t value) {
    GuessRoom changed = room;
    changed.*what = value;
    return MostGuesses(changed);
  };
  EXPECT_EQ(with(&GuessRoom::wanted, 0), 0);
  EXPECT_EQ(with(&GuessRoom::rows, 3), 3);
  // The stream's own row is one of them.
  EXPECT_EQ(with(&GuessRoom::spare_rows, 5), 4);
  EXPECT_EQ(with(&GuessRoom::tokens_left, 2), 2);
  EXPECT_EQ(with(&GuessRoom::events_left, 1), 1);
  EXPECT_EQ(with(&GuessRoom::events_left, -1), 0);
}

}  // namespace
}  // namespace txl
