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
  TurnRecord turn = {.first_token = 70, .last_token = 70};
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

constexpr Nanos kBin = Timeline::kBin;

TEST(ATimeline, CountsTokensInTheBinOfTheirTime) {
  Timeline timeline;
  timeline.Add(0, 1);
  timeline.Add(kBin - 1, 2);
  timeline.Add(kBin, 4);
  timeline.Add(3 * kBin + 5, 8);
  timeline.Add(-7, 16);  // before the start
  EXPECT_EQ(timeline.bins(), (std::vector<int64_t>{19, 4, 0, 8}));
}

TEST(ATimeline, SumsTheBinsThatBeginWithin) {
  Timeline timeline;
  for (int64_t i = 0; i < 10; ++i) timeline.Add(i * kBin, int64_t{1} << i);
  EXPECT_EQ(timeline.Between(0, 10 * kBin), 1023);
  EXPECT_EQ(timeline.Between(2 * kBin, 4 * kBin), 4 + 8);
  EXPECT_EQ(timeline.Between(2 * kBin - 1, 4 * kBin + 1), 4 + 8 + 16);
  EXPECT_EQ(timeline.Between(5 * kBin, 5 * kBin), 0);
  EXPECT_EQ(timeline.Between(7 * kBin, 3 * kBin), 0);
  EXPECT_EQ(timeline.Between(0, 1000 * kBin), 1023);
}

TEST(ATimeline, MergesBinByBin) {
  Timeline a;
  a.Add(0, 1);
  Timeline b;
  b.Add(0, 2);
  b.Add(2 * kBin, 3);
  a.Merge(b);
  EXPECT_EQ(a.bins(), (std::vector<int64_t>{3, 0, 3}));
  b.Merge(Timeline());
  EXPECT_EQ(b.bins(), (std::vector<int64_t>{2, 0, 3}));
}

}  // namespace

}  // namespace txl::bench
