// What Redis holds is damaged.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/base/error.h"
#include "tests/server/store/redis/redis_journal_fixture.h"

namespace txl {
namespace {

class RedisDamageTest : public RedisJournalTest {
 protected:
  static constexpr char kHash[] = "txl:{default/a}:m";

  void SetUp() override {
    RedisJournalTest::SetUp();
    auto opened =
        RedisConnection::Open({"127.0.0.1", redis_->port()}, absl::Seconds(10));
    ASSERT_TRUE(opened.ok()) << opened.status();
    connection_ = *std::move(opened);
    here_->Create(Head("b"), Sequence(Ids(3)));
    MakeTurns();
  }
  // A session with a turn that has ended and one that runs.
  void MakeTurns() {
    OwnHere("r");
    JournalEnd end = EndWith({5, {1, 2}, {}});
    auto record = std::make_shared<TurnRecord>();
    record->identity = {"r", "digest"};
    record->tokens.push_back(Said(2));
    end.record = record;
    here_->End("a", end);
    ASSERT_TRUE(Durable(*here_).ok());
    ASSERT_TRUE(Acquire(*here_, "a", "s").ok());
    TurnIntent intent;
    intent.identity = {"s", "digest"};
    intent.start_position = 7;
    here_->Begin("a", intent, At(1500));
    for (const int32_t id : {3, 4}) {
      here_->Append("a", {4 + id, {id}, {Said(id)}});
      ASSERT_TRUE(Durable(*here_).ok());
    }
    ASSERT_EQ(IdsThere().size(), 9u);
  }
  static TokenEvent Said(int32_t id) {
    TokenEvent event;
    event.token_id = id;
    event.text = "said";
    return event;
  }
  std::string Ask(const RedisCommand& command) {
    const RedisAnswer answer = connection_->CallOne(command);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() && !answer->empty() ? (*answer)[0] : "";
  }
  // Each byte in turn is another one.
  void ExpectEachByteIsNoticed(const RedisCommand& get, RedisCommand set) {
    const std::string whole = Ask(get);
    ASSERT_FALSE(whole.empty());
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
      set.push_back(damaged);
      Ask(set);
      set.pop_back();
      const absl::Status status = Load(*there_, "a").status();
      EXPECT_EQ(GetErrorDetails(status).reason, "SESSION_DAMAGED")
          << get[1] << " byte " << i;
    }
    set.push_back(whole);
    Ask(set);
    EXPECT_EQ(IdsThere().size(), 9u);
  }

  std::unique_ptr<RedisConnection> connection_;
};

TEST_F(RedisDamageTest, EachByteOfEachValueIsNoticed) {
  for (const char* part : {":i", ":t", ":e"}) {
    const std::string key = std::string("txl:{default/a}") + part;
    ExpectEachByteIsNoticed({"GET", key}, {"SET", key});
  }
  for (const char* field : {"head", "intent", "base", "width", "position"}) {
    ExpectEachByteIsNoticed({"HGET", kHash, field}, {"HSET", kHash, field});
  }
  // Others know nothing of it.
  EXPECT_TRUE(Load(*there_, "b").ok());
}

TEST_F(RedisDamageTest, IdsOfAnotherTextAreNone) {
  const std::string key = "txl:{default/a}:i";
  const std::string ids = Ask({"GET", key});
  Ask({"SET", key, ids.substr(2) + ids.substr(0, 2)});
  EXPECT_TRUE(absl::IsDataLoss(Load(*there_, "a").status()));
  EXPECT_TRUE(absl::IsDataLoss(Acquire(*there_, "a", "s").status()));
  Ask({"SET", key, ids});
  EXPECT_EQ(IdsThere().size(), 9u);
}

TEST_F(RedisDamageTest, ADamagedSessionIsListedByItsNameAndCanBeRemoved) {
  Ask({"HSET", kHash, "head", "x"});
  const std::vector<StoredInfo> page = List(*there_, "", 10);
  ASSERT_EQ(page.size(), 2u);
  EXPECT_EQ(page[0].head.session_id, "a");
  there_->Remove("a");
  ASSERT_TRUE(Durable(*there_).ok());
  EXPECT_TRUE(absl::IsNotFound(Load(*there_, "a").status()));
}

TEST_F(RedisDamageTest, WhatARewindLeavesIsWhole) {
  here_->End("a", EndWith({9, {5}, {}}));
  ASSERT_TRUE(Durable(*here_).ok());
  std::vector<int32_t> ids = IdsThere();
  ids.resize(6);
  here_->Rewind("a", 6, Head("a"));
  ASSERT_TRUE(Durable(*here_).ok());
  EXPECT_EQ(IdsThere(), ids);
  ASSERT_TRUE(Acquire(*there_, "a", "t").ok());
  there_->Begin("a", {}, At(1600));
  there_->End("a", EndWith({6, {9}, {}}));
  ASSERT_TRUE(Durable(*there_).ok());
  ids.push_back(9);
  EXPECT_EQ(IdsThere(), ids);
}

}  // namespace
}  // namespace txl
