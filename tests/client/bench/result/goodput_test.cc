#include "client/bench/result/goodput.h"

#include <gtest/gtest.h>

#include "tests/client/bench/turns.h"

namespace txl::bench {
namespace {

constexpr Nanos kMs = kNanosPerSecond / 1000;

// First token after 100 ms, then gaps of 10, 10 and 40 ms: 20 ms on average.
TurnRecord FourTokens() {
  TurnRecord turn = OkTurn(kNanosPerSecond, 160 * kMs);
  turn.first_token = turn.scheduled + 100 * kMs;
  turn.tokens = 4;
  turn.longest_gap = 40 * kMs;
  return turn;
}

TEST(Meets, HoldsEachTimeAgainstItsLimit) {
  const TurnRecord turn = FourTokens();
  EXPECT_TRUE(Meets({}, turn));
  EXPECT_TRUE(Meets({.time_to_first_token = 0.1}, turn));
  EXPECT_FALSE(Meets({.time_to_first_token = 0.099}, turn));
  EXPECT_TRUE(Meets({.inter_token = 0.04}, turn));
  EXPECT_FALSE(Meets({.inter_token = 0.039}, turn));
  EXPECT_TRUE(Meets({.per_token = 0.02}, turn));
  EXPECT_FALSE(Meets({.per_token = 0.0199}, turn));
  EXPECT_TRUE(Meets({.end_to_end = 0.16}, turn));
  EXPECT_FALSE(Meets({.end_to_end = 0.159}, turn));
}

TEST(Meets, CountsFromWhenTheTurnWasDueNotFromWhenItWasSent) {
  TurnRecord late = FourTokens();
  late.scheduled -= 50 * kMs;
  EXPECT_FALSE(Meets({.time_to_first_token = 0.1}, late));
}

TEST(Meets, NeedsAGoodEnd) {
  TurnRecord failed = FourTokens();
  failed.outcome = Outcome::kFailed;
  EXPECT_FALSE(Meets({}, failed));
  EXPECT_FALSE(Meets({}, Refused(0)));
}

TEST(CountGoodput, KeepsFailuresInTheDenominator) {
  TurnRecord slow = FourTokens();
  slow.longest_gap = 90 * kMs;
  slow.end += kNanosPerSecond;
  const Limits limits{.inter_token = 0.05, .end_to_end = 1};
  const Goodput goodput =
      CountGoodput(limits, {FourTokens(), slow, Refused(0), FourTokens()});
  EXPECT_EQ(goodput.judged, 4);
  EXPECT_EQ(goodput.met, 2);
  EXPECT_EQ(goodput.did_not_end, 1);
  EXPECT_EQ(goodput.missed_inter_token, 1);
  EXPECT_EQ(goodput.missed_end_to_end, 1);
  EXPECT_EQ(goodput.missed_first, 0);
  EXPECT_DOUBLE_EQ(goodput.share(), 0.5);
}

TEST(CountGoodput, LeavesOutClientsThatCancelOrReadSlowly) {
  TurnRecord slow_reader = FourTokens();
  slow_reader.slow_reader = true;
  TurnRecord cancels = FourTokens();
  cancels.cancels = true;
  cancels.outcome = Outcome::kCancelled;
  EXPECT_EQ(CountGoodput({}, {slow_reader, cancels}).judged, 0);
  EXPECT_EQ(CountGoodput({}, {}).share(), 0);
}

}  // namespace
}  // namespace txl::bench
