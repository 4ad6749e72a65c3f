// A Redis that goes on without what it has confirmed.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/base/byte_budget.h"
#include "server/store/redis/redis_sender.h"
#include "tests/server/store/redis/redis_journal_fixture.h"

namespace txl {
namespace {

// A failover is made: the session is as it was when `copy` was made.
class FailoverTest : public RedisJournalTest {
 protected:
  void SetUp() override {
    RedisJournalTest::SetUp();
    auto opened =
        RedisConnection::Open({"127.0.0.1", redis_->port()}, absl::Seconds(10));
    ASSERT_TRUE(opened.ok()) << opened.status();
    connection_ = *std::move(opened);
  }
  void CopyAll(const std::string& from, const std::string& to) {
    for (const char* part : {":m", ":i"}) {
      ASSERT_TRUE(
          connection_->CallOne({"COPY", from + part, to + part, "REPLACE"})
              .ok());
    }
    ASSERT_TRUE(connection_->CallOne({"DEL", to + ":e"}).ok());
    (void)connection_->CallOne({"COPY", from + ":e", to + ":e"});
  }
  void Copy() { CopyAll("txl:{default/a}", "copy"); }
  void FailOver() { CopyAll("copy", "txl:{default/a}"); }
  void Append(int64_t from, std::vector<int32_t> ids) {
    here_->Append("a", {from, std::move(ids), {}});
    ASSERT_TRUE(Durable(*here_).ok());
  }
  static std::vector<int32_t> Behind(std::vector<int32_t> more) {
    std::vector<int32_t> ids = Ids(5);
    ids.insert(ids.end(), more.begin(), more.end());
    return ids;
  }

  std::unique_ptr<RedisConnection> connection_;
};

TEST_F(FailoverTest, WhatItLostOfARunningTurnIsEnteredAgain) {
  const auto claim = OwnHere("r");
  Append(5, {1, 2});
  Copy();
  Append(7, {3});
  Append(8, {4, 5});
  FailOver();
  EXPECT_EQ(IdsThere(), Behind({1, 2}));
  Append(10, {6});
  EXPECT_EQ(IdsThere(), Behind({1, 2, 3, 4, 5, 6}));
  here_->End("a", EndWith({11, {7}, {}}));
  ASSERT_TRUE(Durable(*here_).ok());
  EXPECT_EQ(IdsThere(), Behind({1, 2, 3, 4, 5, 6, 7}));
  EXPECT_FALSE(claim->moved());
  EXPECT_EQ(here_->status().tokens_lost, 0);
}

TEST_F(FailoverTest, TheEndOfATurnFindsWhatIsMissing) {
  OwnHere("r");
  Copy();  // before the first tokens
  TokenEvent event;
  event.token_id = 2;
  here_->Append("a", {5, {1, 2}, {event}});
  ASSERT_TRUE(Durable(*here_).ok());
  FailOver();
  here_->End("a", EndWith({7, {3}, {}}));
  ASSERT_TRUE(Durable(*here_).ok());
  EXPECT_EQ(IdsThere(), Behind({1, 2, 3}));
  EXPECT_FALSE(Load(*there_, "a")->running.has_value());
}

TEST_F(FailoverTest, TheBeginOfATurnIsEnteredAgain) {
  here_->Create(Head("a"), Sequence(Ids(5)));
  ASSERT_TRUE(Durable(*here_).ok());
  ASSERT_TRUE(Acquire(*here_, "a", "r").ok());
  Copy();
  TurnIntent intent;
  intent.seed = 42;
  here_->Begin("a", intent, At(1500));
  Append(5, {1});
  FailOver();
  EXPECT_FALSE(Load(*there_, "a")->running.has_value());
  Append(6, {2});
  const auto loaded = Load(*there_, "a");
  ASSERT_TRUE(loaded->running.has_value());
  EXPECT_EQ(loaded->running->seed, 42u);
  EXPECT_EQ(loaded->running_tokens, 2);
  EXPECT_EQ(IdsThere(), Behind({1, 2}));
}

TEST_F(FailoverTest, NothingIsEnteredBehindAnotherOwner) {
  const auto claim = OwnHere("r");
  Append(5, {1});
  Copy();
  Append(6, {2, 3});
  FailOver();
  ASSERT_TRUE(Acquire(*there_, "a", "r").ok());
  Append(8, {4});
  EXPECT_EQ(claim->moved_to, 6);
  EXPECT_EQ(IdsThere(), Behind({1}));
}

TEST_F(FailoverTest, WhatDoesNotJoinIsRefusedAndCounted) {
  const auto claim = OwnHere("r");
  Append(5, {1});
  Append(6, {2, 3});
  // The position of an earlier change, with another text.
  ASSERT_TRUE(connection_
                  ->CallOne({"HSET", "txl:{default/a}:m", "position", "6",
                             "chain", "another"})
                  .ok());
  Append(8, {4});
  EXPECT_EQ(claim->moved_to, 6);
  EXPECT_EQ(here_->status().tokens_lost, 2);
}

TEST_F(FailoverTest, WhatIsTooLongToBeKeptIsLost) {
  const auto claim = OwnHere("r");
  Append(5, {1});
  Copy();
  constexpr int64_t kMany = 2 * RedisSender::kMostKept;
  Append(6, Ids(kMany));
  FailOver();
  Append(6 + kMany, {4});
  EXPECT_EQ(claim->moved_to, 6);
  EXPECT_EQ(here_->status().tokens_lost, kMany);
}

// What turns keep to enter it again, in a budget.
class KeptTest : public FailoverTest {
 protected:
  static constexpr int64_t kBudget = 1 << 20;

  void SetUp() override {
    FailoverTest::SetUp();
    OpenWith(budget_);
  }
  void TearDown() override { here_.reset(); }  // before its budget
  void OpenWith(ByteBudget& budget) {
    RedisJournalOptions options = RedisOptions(*redis_);
    options.kept = &budget;
    here_ = OpenJournal(options);
  }

  ByteBudget budget_{kBudget};
};

TEST_F(KeptTest, IsTakenFromTheBudgetUntilTheTurnEnds) {
  OwnHere("r");
  const int64_t begun = budget_.used();
  EXPECT_GT(begun, 0);
  Append(5, Ids(1000));
  EXPECT_GE(budget_.used(), begun + 1000);
  here_->End("a", EndWith({1005, {7}, {}}));
  ASSERT_TRUE(Durable(*here_).ok());
  EXPECT_EQ(budget_.used(), 0);
}

TEST_F(KeptTest, IsGivenBackWhereAnotherServerTakesTheTurn) {
  OwnHere("r");
  Append(5, {1});
  ASSERT_TRUE(Acquire(*there_, "a", "r").ok());
  Append(6, {2});
  EXPECT_EQ(budget_.used(), 0);
}

TEST_F(KeptTest, IsNoMoreThanATurnsLimitWithItsOverhead) {
  OwnHere("r");
  for (int64_t i = 0; i < 40; ++i) Append(5 + 4000 * i, Ids(4000));
  EXPECT_GT(budget_.used(), RedisSender::kMostKept / 2);
  EXPECT_LT(budget_.used(), 2 * RedisSender::kMostKept);
}

TEST_F(KeptTest, LeavesHalfOfTheBudgetAndRefusesNothing) {
  const auto hold = budget_.TryHold(kBudget / 2 - 3000);
  ASSERT_TRUE(hold.has_value());
  const auto claim = OwnHere("r");
  Append(5, {1});
  Copy();
  Append(6, Ids(4000));
  EXPECT_LE(budget_.used(), kBudget / 2);
  EXPECT_EQ(budget_.refused(), 0);
  FailOver();  // then nothing is left to enter again
  Append(4006, {4});
  EXPECT_EQ(claim->moved_to, 6);
  EXPECT_EQ(here_->status().tokens_lost, 4000);
}

TEST_F(KeptTest, IsKeptAgainOnceThereIsRoom) {
  auto hold = budget_.TryHold(kBudget / 2);
  const auto claim = OwnHere("r");
  Append(5, {1});
  EXPECT_EQ(budget_.used(), kBudget / 2);
  hold.reset();
  Append(6, {2});
  Copy();
  Append(7, {3});
  FailOver();
  Append(8, {4});
  EXPECT_EQ(IdsThere(), Behind({1, 2, 3, 4}));
  EXPECT_FALSE(claim->moved());
}

}  // namespace
}  // namespace txl
