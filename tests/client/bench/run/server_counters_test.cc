#include "client/bench/run/server_counters.h"

#include <gtest/gtest.h>

#include "tests/client/bench/turns.h"

namespace txl::bench {
namespace {

using Verdict = ServerCheck::Verdict;

TurnRecord Cut(int64_t tokens) {
  TurnRecord turn = OkTurn(0, 10);
  turn.status = "CANCELLED";
  turn.outcome = Outcome::kCancelled;
  turn.tokens = tokens;
  return turn;
}

DriverResult Turns(std::vector<TurnRecord> turns) {
  DriverResult result;
  result.turns = std::move(turns);
  return result;
}

TEST(CountersOf, TakesThoseOfTheServersAnswer) {
  v1::GetServerStatusResponse status;
  (*status.mutable_turns_finished())["OK"] = 5;
  (*status.mutable_turns_finished())["CANCELLED"] = 2;
  status.set_tokens_delivered(70);
  const ServerCounters counters = CountersOf(status);
  EXPECT_EQ(counters.turns_ended_ok, 5);
  EXPECT_EQ(counters.turns_ended, 7);
  EXPECT_EQ(counters.tokens_delivered, 70);
}

TEST(CompareCounters, FindsEqualTokens) {
  const ServerCheck check = CompareCounters(
      {10, 10, 100}, {12, 12, 102}, Turns({OkTurn(0, 1), OkTurn(0, 1)}));
  EXPECT_EQ(check.verdict, Verdict::kEqual);
  EXPECT_EQ(check.server_turns, 2);
  EXPECT_EQ(check.own_turns, 2);
  EXPECT_EQ(check.server_tokens, 2);
  EXPECT_EQ(check.own_tokens, 2);
}

TEST(CompareCounters, FindsLostAndAdditionalTokens) {
  const DriverResult run = Turns({OkTurn(0, 1), OkTurn(0, 1)});
  EXPECT_EQ(CompareCounters({0, 0, 0}, {2, 2, 3}, run).verdict,
            Verdict::kUnequal);
  EXPECT_EQ(CompareCounters({0, 0, 0}, {2, 2, 1}, run).verdict,
            Verdict::kUnequal);
}

TEST(CompareCounters, SaysNothingWhenSomebodyElseWasThere) {
  EXPECT_EQ(
      CompareCounters({0, 0, 0}, {3, 3, 1}, Turns({OkTurn(0, 1)})).verdict,
      Verdict::kNotComparable);
}

TEST(CompareCounters, AllowsTokensThatACutTurnDidNotRead) {
  const DriverResult run = Turns({OkTurn(0, 1), Cut(3)});
  EXPECT_EQ(CompareCounters({0, 0, 0}, {1, 2, 4}, run).verdict,
            Verdict::kEqual);
  EXPECT_EQ(CompareCounters({0, 0, 0}, {1, 2, 9}, run).verdict,
            Verdict::kConsistent);
  // The cancel came when the server had ended the turn.
  EXPECT_EQ(CompareCounters({0, 0, 0}, {2, 2, 9}, run).verdict,
            Verdict::kConsistent);
  // Tokens that nobody sent.
  EXPECT_EQ(CompareCounters({0, 0, 0}, {1, 2, 3}, run).verdict,
            Verdict::kUnequal);
  EXPECT_EQ(CompareCounters({0, 0, 0}, {2, 5, 9}, run).verdict,
            Verdict::kNotComparable);
}

TEST(CompareCounters, LeavesOutTurnsThatWereNotSentOrRefused) {
  TurnRecord not_sent = OkTurn(0, 0);
  not_sent.tokens = 0;
  not_sent.status = "NOT_SENT";
  not_sent.outcome = Outcome::kNotSent;
  EXPECT_EQ(CompareCounters({0, 0, 0}, {1, 1, 1},
                            Turns({OkTurn(0, 1), Refused(0), not_sent}))
                .verdict,
            Verdict::kEqual);
}

TEST(VerdictNames, AreThoseOfTheJson) {
  EXPECT_STREQ(VerdictName(Verdict::kEqual), "equal");
  EXPECT_STREQ(VerdictName(Verdict::kConsistent), "consistent");
  EXPECT_STREQ(VerdictName(Verdict::kUnequal), "unequal");
  EXPECT_STREQ(VerdictName(Verdict::kNotComparable), "not comparable");
}

}  // namespace
}  // namespace txl::bench
