#include "client/bench/result/goodput.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "client/bench/plan/arrivals.h"
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

// Arrivals of `seconds` at a server that serves one after the other, each in
// 1/capacity seconds.
std::vector<TurnRecord> OneByOne(ArrivalKind kind, double rate, double capacity,
                                 double seconds) {
  std::vector<TurnRecord> turns;
  Arrivals arrivals(kind, {.rate = rate}, 5);
  double free = 0;
  for (double t = arrivals.Next(); t < seconds; t = arrivals.Next()) {
    free = std::max(free, t) + 1 / capacity;
    turns.push_back(OkTurn(FromSeconds(t), FromSeconds(free - t)));
  }
  return turns;
}

Backlog Judge(const std::vector<TurnRecord>& turns, double seconds) {
  return JudgeBacklog(turns, 0, FromSeconds(seconds));
}

TEST(Backlog, GrowsByTheRateBeyondCapacity) {
  const Backlog backlog =
      Judge(OneByOne(ArrivalKind::kConstant, 30, 20, 60), 60);
  EXPECT_TRUE(backlog.beyond_capacity);
  EXPECT_NEAR(backlog.growth, 10, 0.2);
  EXPECT_NEAR(static_cast<double>(backlog.at_end), 600, 3);
  EXPECT_NE(backlog.reason.find("piled up by 10.0 a second"), std::string::npos)
      << backlog.reason;
}

TEST(Backlog, IsNoneBelowCapacity) {
  for (const ArrivalKind kind :
       {ArrivalKind::kConstant, ArrivalKind::kPoisson}) {
    for (const double rate : {2.0, 10.0, 16.0}) {
      const Backlog backlog = Judge(OneByOne(kind, rate, 20, 120), 120);
      EXPECT_FALSE(backlog.beyond_capacity) << rate << backlog.reason;
      EXPECT_EQ(backlog.refused_share, 0);
    }
  }
}

TEST(Backlog, ShowsUnderPoissonArrivalsToo) {
  EXPECT_TRUE(
      Judge(OneByOne(ArrivalKind::kPoisson, 25, 20, 120), 120).beyond_capacity);
}

TEST(Backlog, LongTurnsAloneAreNone) {
  // 20 s each, all at once: after that many leave as arrive.
  std::vector<TurnRecord> turns;
  for (int i = 0; i < 1200; ++i) {
    turns.push_back(OkTurn(FromSeconds(i / 10.0), FromSeconds(20)));
  }
  EXPECT_FALSE(Judge(turns, 120).beyond_capacity);
  EXPECT_NEAR(static_cast<double>(Judge(turns, 120).at_end), 200, 1);
}

TEST(Backlog, RefusalsAreBeyondCapacityToo) {
  std::vector<TurnRecord> turns;
  for (int i = 0; i < 1000; ++i) turns.push_back(OkTurn(i * 1000, 10));
  for (int i = 0; i < 10; ++i) turns[i] = Refused(i * 1000);
  EXPECT_FALSE(JudgeBacklog(turns, 0, 1'000'000).beyond_capacity);
  turns[10].outcome = Outcome::kNotSent;
  const Backlog backlog = JudgeBacklog(turns, 0, 1'000'000);
  EXPECT_TRUE(backlog.beyond_capacity);
  EXPECT_DOUBLE_EQ(backlog.refused_share, 0.011);
  EXPECT_NE(backlog.reason.find("1.1 %"), std::string::npos);
}

TEST(Backlog, OfNothingIsNone) {
  EXPECT_FALSE(Judge({}, 10).beyond_capacity);
  EXPECT_FALSE(JudgeBacklog({OkTurn(0, 1)}, 5, 5).beyond_capacity);
}

}  // namespace

}  // namespace txl::bench
