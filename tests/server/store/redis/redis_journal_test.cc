// Two servers' journals on one Redis.

#include "server/store/redis/redis_journal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "absl/synchronization/notification.h"
#include "server/base/error.h"
#include "tests/server/store/redis/redis_journal_fixture.h"

namespace txl {
namespace {

TEST_F(RedisJournalTest, ASessionGoesOnElsewhereAndItsFirstCopyIsOldThen) {
  const auto claim = OwnHere("r");
  here_->End("a", EndWith({5, {1, 2}, {}}));
  ASSERT_TRUE(Durable(*here_).ok());
  EXPECT_FALSE(Refresh(*here_, "a", claim)->stored.has_value());  // current
  const auto acquired = Acquire(*there_, "a", "s");
  ASSERT_TRUE(acquired.ok()) << acquired.status();
  EXPECT_EQ(acquired->stored->token_ids.size(), 7);
  there_->Begin("a", {}, At(1600));
  there_->End("a", EndWith({7, {3}, {}}));
  ASSERT_TRUE(Durable(*there_).ok());
  const auto again = Acquire(*here_, "a", "t", claim);
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_TRUE(again->stored.has_value());
  EXPECT_EQ(again->stored->token_ids.size(), 8);
  EXPECT_NE(again->claim, claim);
}

TEST_F(RedisJournalTest, AFormerOwnersCopyIsCurrentUntilAnotherOwns) {
  const auto claim = OwnHere("r");
  here_->End("a", EndWith({5, {1}, {}}));
  const auto again = Acquire(*here_, "a", "s", claim);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->stored.has_value());
  EXPECT_EQ(again->claim, claim);
  here_->Begin("a", {}, At(1700));
  here_->End("a", EndWith({6, {2}, {}}));
  ASSERT_TRUE(Durable(*here_).ok());
  EXPECT_FALSE(claim->moved());
  EXPECT_EQ(IdsThere().size(), 7u);
}

TEST_F(RedisJournalTest, AnotherRequestIsBusyUntilTheSessionIsReleased) {
  OwnHere("r");
  const absl::Status busy = Acquire(*there_, "a", "s").status();
  EXPECT_TRUE(absl::IsAborted(busy));
  EXPECT_EQ(GetErrorDetails(busy).reason, "SESSION_BUSY");
  EXPECT_TRUE(GetErrorDetails(busy).retry.has_value());
  EXPECT_TRUE(absl::IsAborted(Acquire(*there_, "a", "").status()));
  EXPECT_EQ(there_->status().busy, 2);
  here_->Release("a");
  here_->Drain(absl::Seconds(30));
  // Behind the release, which is on its way already.
  ASSERT_TRUE(Refresh(*here_, "a", nullptr).ok());
  EXPECT_TRUE(Acquire(*there_, "a", "s").ok());
}

TEST_F(RedisJournalTest, TheSameRequestTakesOverAndTheLateWriterIsFenced) {
  const auto claim = OwnHere("r");
  absl::Notification moved;
  here_->OnMoved([&](const std::string& id, const auto& lost) {
    EXPECT_EQ(id, "a");
    EXPECT_EQ(lost, claim);
    moved.Notify();
  });
  here_->Append("a", {5, {1, 2}, {}});
  ASSERT_TRUE(Durable(*here_).ok());
  const auto taken = Acquire(*there_, "a", "r");
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->stored->token_ids.size(), 7);
  EXPECT_EQ(there_->status().taken_over, 1);
  there_->Append("a", {7, {3}, {}});
  ASSERT_TRUE(Durable(*there_).ok());

  here_->Append("a", {7, {4, 5}, {}});
  here_->End("a", EndWith({9, {}, {}}));
  ASSERT_TRUE(Durable(*here_).ok());
  EXPECT_EQ(claim->moved_to, 8);
  moved.WaitForNotification();
  EXPECT_EQ(here_->status().fenced, 1);
  std::vector<int32_t> expected = Ids(5);
  expected.insert(expected.end(), {1, 2, 3});
  EXPECT_EQ(IdsThere(), expected);
}

TEST_F(RedisJournalTest, ATurnWithoutTokensLearnsThatItWasTakenOver) {
  const auto claim = OwnHere("r");
  absl::Notification moved;
  here_->OnMoved([&](const auto&, const auto&) { moved.Notify(); });
  ASSERT_TRUE(Acquire(*there_, "a", "r").ok());
  moved.WaitForNotification();  // it tells each second that it is there
  EXPECT_EQ(claim->moved_to, 5);
}

TEST_F(RedisJournalTest, ADeletedSessionsTurnLearnsIt) {
  const auto claim = OwnHere("r");
  there_->Remove("a");
  ASSERT_TRUE(Durable(*there_).ok());
  here_->Append("a", {5, {1}, {}});
  ASSERT_TRUE(Durable(*here_).ok());
  EXPECT_EQ(claim->moved_to, SessionClaim::kGone);
  EXPECT_TRUE(absl::IsNotFound(Acquire(*here_, "a").status()));
}

TEST_F(RedisJournalTest, ANameIsCreatedByOneServerOnly) {
  here_->Create(Head("a"), Sequence(Ids(5)));
  ASSERT_TRUE(Durable(*here_).ok());
  there_->Create(Head("a"), Sequence(Ids(6)));
  ASSERT_TRUE(Durable(*there_).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(there_->TakeRefusal("a")));
  EXPECT_TRUE(there_->TakeRefusal("a").ok());  // told once
  EXPECT_TRUE(here_->TakeRefusal("a").ok());
  EXPECT_EQ(IdsThere().size(), 5u);
}

TEST_F(RedisJournalTest, ARewindOfAnOldCopyChangesNothing) {
  here_->Create(Head("a"), Sequence(Ids(5)));
  ASSERT_TRUE(Durable(*here_).ok());
  ASSERT_TRUE(Acquire(*there_, "a", "r").ok());
  there_->Begin("a", {}, At(1500));
  there_->End("a", EndWith({5, {1}, {}}));
  ASSERT_TRUE(Durable(*there_).ok());
  here_->Rewind("a", 2, Head("a"));
  ASSERT_TRUE(Durable(*here_).ok());
  EXPECT_EQ(GetErrorDetails(here_->TakeRefusal("a")).reason, "SESSION_MOVED");
  EXPECT_EQ(IdsThere().size(), 6u);
}

// Each of those who wait for it hears that.
TEST_F(RedisJournalTest, EveryRewindOfAnOldCopyIsRefused) {
  here_->Create(Head("a"), Sequence(Ids(5)));
  ASSERT_TRUE(Durable(*here_).ok());
  ASSERT_TRUE(Acquire(*there_, "a", "r").ok());
  here_->Rewind("a", 2, Head("a"));
  here_->Rewind("a", 1, Head("a"));
  ASSERT_TRUE(Durable(*here_).ok());
  EXPECT_FALSE(here_->TakeRefusal("a").ok());
  EXPECT_FALSE(here_->TakeRefusal("a").ok());
  EXPECT_TRUE(here_->TakeRefusal("a").ok());
  EXPECT_EQ(IdsThere().size(), 5u);
}

// Who deletes it cannot know where it is.
TEST_F(RedisJournalTest, ASessionThatMovedAwayIsRemoved) {
  const auto claim = OwnHere("r");
  ASSERT_TRUE(Acquire(*there_, "a", "r").ok());
  here_->Append("a", {5, {1}, {}});
  ASSERT_TRUE(Durable(*here_).ok());
  ASSERT_TRUE(claim->moved());
  here_->Remove("a");
  ASSERT_TRUE(Durable(*here_).ok());
  EXPECT_TRUE(absl::IsNotFound(Load(*there_, "a").status()));
}

// It is another one than what moved away.
TEST_F(RedisJournalTest, ANewerSessionOfTheNameIsNotRemoved) {
  const auto claim = OwnHere("r");
  there_->Remove("a");
  there_->Create(Head("a"), Sequence(Ids(6)));
  ASSERT_TRUE(Durable(*there_).ok());
  here_->Append("a", {5, {1}, {}});
  here_->Remove("a");
  ASSERT_TRUE(Durable(*here_).ok());
  EXPECT_EQ(IdsThere().size(), 6u);
}

// A read finds it out before the turn's next entry does.
TEST_F(RedisJournalTest, AReadSaysThatTheSessionMovedAway) {
  const auto claim = OwnHere("r");
  ASSERT_TRUE(Refresh(*here_, "a", claim).ok());
  EXPECT_FALSE(claim->moved());
  ASSERT_TRUE(Acquire(*there_, "a", "r").ok());
  ASSERT_TRUE(Refresh(*here_, "a", claim).ok());
  EXPECT_EQ(claim->moved_to, 5);
  EXPECT_EQ(here_->status().fenced, 1);
}

TEST_F(RedisJournalTest, WhatAnotherServerUsedDoesNotExpire) {
  here_->Create(Head("a"), Sequence(Ids(5)));  // until 1000 + an hour
  ASSERT_TRUE(Durable(*here_).ok());
  ASSERT_TRUE(Acquire(*there_, "a", "r").ok());
  there_->Begin("a", {}, At(1500));
  there_->End("a", EndWith({5, {}, {}}));  // until 2000 + an hour
  ASSERT_TRUE(Durable(*there_).ok());
  std::atomic<int> removed = 0;
  const auto expire = [&](absl::Time now) {
    return DurableUpTo(*here_, here_->Expire("a", now, [&] { ++removed; }));
  };
  ASSERT_TRUE(expire(At(1000 + 3600)).ok());
  EXPECT_EQ(IdsThere().size(), 5u);
  EXPECT_EQ(removed, 0);
  ASSERT_TRUE(expire(At(2000 + 3600)).ok());
  EXPECT_TRUE(absl::IsNotFound(Load(*there_, "a").status()));
  EXPECT_EQ(removed, 1);
  ASSERT_TRUE(expire(At(2000 + 3600)).ok());  // it is gone
  EXPECT_EQ(removed, 1);
}

TEST_F(RedisJournalTest, AKilledRedisLosesNothingAndEntriesGoOnOnce) {
  const auto claim = OwnHere("r");
  here_->Append("a", {5, {1}, {}});
  ASSERT_TRUE(Durable(*here_).ok());
  redis_->Kill();
  here_->Append("a", {6, {2}, {}});
  const uint64_t last = here_->Append("a", {7, {3, 4}, {}});
  const absl::Status read = Load(*here_, "a").status();
  EXPECT_TRUE(absl::IsUnavailable(read)) << read;
  EXPECT_EQ(GetErrorDetails(read).reason, "STORE_UNAVAILABLE");
  // Whoever read was told first.
  while (here_->Silent() == absl::ZeroDuration()) std::this_thread::yield();
  EXPECT_LT(here_->durable_entry(), last);
  redis_->Start();
  ASSERT_TRUE(DurableUpTo(*here_, last).ok());
  EXPECT_EQ(here_->Silent(), absl::ZeroDuration());
  EXPECT_FALSE(claim->moved());
  std::vector<int32_t> expected = Ids(5);
  expected.insert(expected.end(), {1, 2, 3, 4});
  EXPECT_EQ(IdsThere(), expected);
}

TEST_F(RedisJournalTest, SilenceGrowsAlsoWhereNobodyAsks) {
  redis_->Kill();
  absl::Duration longest;
  // A pass without work comes each second.
  while (longest < absl::Seconds(1.2)) {
    longest = std::max(longest, here_->Silent());
    std::this_thread::yield();
  }
  redis_->Start();
  while (here_->Silent() > absl::ZeroDuration()) std::this_thread::yield();
  EXPECT_TRUE(absl::IsNotFound(Load(*here_, "a").status()));
}

TEST_F(RedisJournalTest, WhatRedisLostEndsTheCopyAndIsCounted) {
  const auto claim = OwnHere("r");
  here_->Append("a", {5, {1, 2, 3}, {}});
  ASSERT_TRUE(Durable(*here_).ok());
  auto connection =
      RedisConnection::Open({"127.0.0.1", redis_->port()}, absl::Seconds(10));
  ASSERT_TRUE((*connection)
                  ->CallOne({"HSET", "txl:{default/a}:m", "position", "6"})
                  .ok());
  here_->Append("a", {8, {4}, {}});
  ASSERT_TRUE(Durable(*here_).ok());
  EXPECT_EQ(claim->moved_to, 6);
  EXPECT_EQ(here_->status().tokens_lost, 2);
}

TEST_F(RedisJournalTest, AnEmptiedRedisIsNoEndlessWait) {
  const auto claim = OwnHere("r");
  auto connection =
      RedisConnection::Open({"127.0.0.1", redis_->port()}, absl::Seconds(10));
  ASSERT_TRUE((*connection)->CallOne({"FLUSHALL"}).ok());
  ASSERT_TRUE((*connection)->CallOne({"FUNCTION", "FLUSH"}).ok());
  here_->Append("a", {5, {1}, {}});
  ASSERT_TRUE(Durable(*here_).ok());
  EXPECT_EQ(claim->moved_to, SessionClaim::kGone);
  here_->Create(Head("b"), Sequence(Ids(3)));
  ASSERT_TRUE(Durable(*here_).ok());
  EXPECT_EQ(Load(*there_, "b")->token_ids.size(), 3);
}

}  // namespace
}  // namespace txl
