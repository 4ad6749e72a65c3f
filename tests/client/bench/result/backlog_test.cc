#include "client/bench/result/backlog.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "client/bench/plan/arrivals.h"
#include "tests/client/bench/turns.h"

namespace txl::bench {
namespace {

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
