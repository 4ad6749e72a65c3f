#include "client/bench/measure/turn_record.h"

#include <gtest/gtest.h>

#include <set>

namespace txl::bench {
namespace {

TEST(ATurnsTimes, CountFromWhenItWasDue) {
  TurnRecord turn;
  turn.scheduled = 100;
  turn.sent = 130;
  turn.first_token = 180;
  turn.last_token = 240;
  turn.end = 250;
  turn.tokens = 4;
  EXPECT_EQ(turn.ToFirstToken(), 80);
  EXPECT_EQ(turn.ToEnd(), 150);
  EXPECT_EQ(turn.PerToken(), 20);
}

TEST(ATurnsMeanGap, NeedsTwoTokens) {
  TurnRecord turn;
  turn.first_token = turn.last_token = 70;
  EXPECT_EQ(turn.PerToken(), 0);
  turn.tokens = 1;
  EXPECT_EQ(turn.PerToken(), 0);
}

TEST(ATurn, IsOrdinaryUnlessItsClientIsNot) {
  TurnRecord turn;
  EXPECT_TRUE(turn.ordinary());
  turn.slow_reader = true;
  EXPECT_FALSE(turn.ordinary());
  turn.slow_reader = false;
  turn.cancels = true;
  EXPECT_FALSE(turn.ordinary());
}

TEST(Outcomes, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Outcome outcome :
       {Outcome::kOk, Outcome::kCancelled, Outcome::kRejected, Outcome::kFailed,
        Outcome::kIncomplete, Outcome::kNotSent}) {
    names.insert(OutcomeName(outcome));
  }
  EXPECT_EQ(names, (std::set<std::string>{"ok", "cancelled", "rejected",
                                          "failed", "incomplete", "not_sent"}));
}

TEST(Times, AreRoundedToNanoseconds) {
  EXPECT_EQ(FromSeconds(1.5), 1'500'000'000);
  EXPECT_EQ(FromSeconds(1e-9), 1);
  EXPECT_EQ(FromSeconds(1.6e-9), 2);
  EXPECT_EQ(FromSeconds(-1.6e-9), -2);
  EXPECT_DOUBLE_EQ(ToSeconds(250'000'000), 0.25);
}

}  // namespace
}  // namespace txl::bench
