// Several Redis as one store.

#include "server/store/redis/sharded_journal.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/base/error.h"
#include "server/store/redis/redis_address.h"
#include "server/store/redis/redis_calls.h"
#include "tests/server/store/redis/redis_fixture.h"

namespace txl {
namespace {

class ShardedJournalTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    first_ = new testing::RedisServer();
    second_ = new testing::RedisServer();
  }
  static void TearDownTestSuite() {
    delete first_;
    delete second_;
  }
  void SetUp() override {
    Flush(*first_);
    Flush(*second_);
    journal_ = OpenJournal(RedisOptions({first_, second_}));
  }
  // A name that this shard keeps.
  static std::string NameOn(size_t shard) {
    std::string name = "s";
    while (ShardOf(RedisNameOf(name), 2) != shard) name += "s";
    return name;
  }
  // Five ids, acquired, in a turn that has begun.
  void Own(const std::string& id) {
    journal_->Create(Head(id), Sequence(Ids(5)));
    ASSERT_TRUE(Durable(*journal_->Of(id)).ok());
    ASSERT_TRUE(Acquire(*journal_, id, "r").ok());
    journal_->Begin(id, {}, At(1500));
    ASSERT_TRUE(Durable(*journal_->Of(id)).ok());
  }
  int64_t PositionOf(const std::string& id) {
    const auto loaded = Load(*journal_, id);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? loaded->token_ids.size() : -1;
  }

  static testing::RedisServer* first_;
  static testing::RedisServer* second_;
  const std::string here_ = NameOn(0);
  const std::string there_ = NameOn(1);
  std::unique_ptr<SharedJournal> journal_;
};

testing::RedisServer* ShardedJournalTest::first_ = nullptr;
testing::RedisServer* ShardedJournalTest::second_ = nullptr;

TEST_F(ShardedJournalTest, SessionsOfSeveralShardsAreOneStore) {
  std::vector<std::string> names;
  for (int i = 10; i < 40; ++i) {
    names.push_back(std::to_string(i));
    journal_->Create(Head(names.back()), Sequence(Ids(i)));
  }
  ASSERT_TRUE(Durable(*journal_).ok());
  std::vector<std::string> listed;
  for (const StoredInfo& info : List(*journal_, "", 30)) {
    listed.push_back(info.head.session_id);
  }
  EXPECT_EQ(listed, names);
  EXPECT_EQ(PositionOf("17"), 17);
  EXPECT_EQ(Positions(*journal_).size(), 30u);
  EXPECT_EQ(Positions(*journal_, "17"),
            (std::map<std::string, int64_t>{{"17", 17}}));
  EXPECT_EQ(Expired(*journal_, At(1000 + 3600), 100).size(), 30u);
  EXPECT_EQ(Expired(*journal_, At(1000 + 3600), 7).size(), 7u);
  for (const testing::RedisServer* shard : {first_, second_}) {
    auto connection =
        RedisConnection::Open({"127.0.0.1", shard->port()}, absl::Seconds(10));
    const RedisAnswer count = (*connection)->CallOne({"ZCARD", "txl:ids"});
    EXPECT_NE((*count)[0], "0");
    EXPECT_NE((*count)[0], "30");
  }
}

TEST_F(ShardedJournalTest, EntriesAreNumberedByTheShardOfTheirSession) {
  EXPECT_EQ(journal_->Create(Head(here_), Sequence(Ids(5))), 1u);
  EXPECT_EQ(journal_->Create(Head(there_), Sequence(Ids(6))), 1u);
  EXPECT_EQ(journal_->Remove(there_), 2u);
  EXPECT_EQ(journal_->Of(here_)->last_entry(), 1u);
  EXPECT_EQ(journal_->Of(there_)->last_entry(), 2u);
  EXPECT_EQ(journal_->last_entry(), 3u);
  ASSERT_TRUE(Durable(*journal_).ok());
  EXPECT_EQ(journal_->durable_entry(), 3u);
  EXPECT_EQ(journal_->status().durable, 3u);
}

TEST_F(ShardedJournalTest, AShardThatIsDownStallsItsOwnSessionsOnly) {
  Own(here_);
  Own(there_);
  second_->Kill();
  const uint64_t stalled = journal_->Append(there_, {5, {1, 2}, {}});
  const absl::Status read = Load(*journal_, there_).status();
  EXPECT_EQ(GetErrorDetails(read).reason, "STORE_UNAVAILABLE") << read;

  journal_->Append(here_, {5, {1}, {}});
  const uint64_t ended = journal_->End(here_, EndWith({6, {2}, {}}));
  EXPECT_TRUE(DurableUpTo(*journal_->Of(here_), ended).ok());
  EXPECT_EQ(PositionOf(here_), 7);
  EXPECT_TRUE(Acquire(*journal_, here_, "s").ok());
  EXPECT_LT(journal_->Of(there_)->durable_entry(), stalled);
  EXPECT_EQ(journal_->status().tokens_waiting, 2);

  // The whole goes on; a list of all would be one without some.
  while (journal_->LongestSilence() == absl::ZeroDuration()) {
    std::this_thread::yield();
  }
  EXPECT_EQ(journal_->Silent(), absl::ZeroDuration());
  absl::Notification told;
  journal_->List("", 10, [&](const auto& page) {
    EXPECT_TRUE(absl::IsUnavailable(page.status())) << page.status();
    told.Notify();
  });
  told.WaitForNotification();
  second_->Start();
  EXPECT_TRUE(DurableUpTo(*journal_->Of(there_), stalled).ok());
  EXPECT_EQ(PositionOf(there_), 7);
  EXPECT_EQ(journal_->LongestSilence(), absl::ZeroDuration());
}

TEST_F(ShardedJournalTest, WhatExpiredIsToldByTheShardsThatAnswer) {
  journal_->Create(Head(here_), Sequence({}));
  journal_->Create(Head(there_), Sequence({}));
  ASSERT_TRUE(Durable(*journal_).ok());
  second_->Kill();
  EXPECT_EQ(Expired(*journal_, At(1000 + 3600)),
            std::vector<std::string>{here_});
  second_->Start();
}

TEST_F(ShardedJournalTest, AllShardsDownAreSilence) {
  first_->Kill();
  second_->Kill();
  EXPECT_TRUE(absl::IsUnavailable(Load(*journal_, here_).status()));
  EXPECT_TRUE(absl::IsUnavailable(Load(*journal_, there_).status()));
  while (journal_->Silent() == absl::ZeroDuration()) std::this_thread::yield();
  first_->Start();
  while (journal_->Silent() > absl::ZeroDuration()) std::this_thread::yield();
  EXPECT_GT(journal_->LongestSilence(), absl::ZeroDuration());
  second_->Start();
}

TEST_F(ShardedJournalTest, AClaimThatIsLostIsToldByEveryShard) {
  const auto other = OpenJournal(RedisOptions({first_, second_}));
  for (const std::string& id : {here_, there_}) {
    Own(id);
    absl::Notification moved;
    journal_->OnMoved([&](const std::string& lost, const auto&) {
      EXPECT_EQ(lost, id);
      moved.Notify();
    });
    ASSERT_TRUE(Acquire(*other, id, "r").ok());
    journal_->Append(id, {5, {1}, {}});
    moved.WaitForNotification();
    EXPECT_EQ(PositionOf(id), 5);
  }
  EXPECT_EQ(journal_->status().fenced, 2);
}

TEST(OpenRedisJournal, AShardThatIsNotThereIsNamed) {
  const testing::RedisServer there;
  RedisJournalOptions options = RedisOptions({&there});
  options.shards.push_back({"127.0.0.1", 1});
  const absl::Status status = OpenRedisJournal(options).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(status.message().find("127.0.0.1:1"), absl::string_view::npos);
}

}  // namespace
}  // namespace txl
