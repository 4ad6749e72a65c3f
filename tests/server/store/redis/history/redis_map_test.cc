#include "tests/server/store/redis/history/redis_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace txl::history {
namespace {

Reply Call(RedisMap& store, const Words& words) {
  const absl::StatusOr<Reply> reply = store.Call(words);
  EXPECT_TRUE(reply.ok()) << reply.status();
  return reply.value_or(Reply());
}

const Reply kNothing = std::monostate();
Reply Number(int64_t number) { return number; }
Reply Text(const std::string& text) { return text; }

// Answers as redis.io's pages of the commands have them.
TEST(RedisMap, HasHashes) {
  RedisMap store;
  EXPECT_EQ(Call(store, {"HGET", "h", "a"}), kNothing);
  EXPECT_EQ(Call(store, {"HSET", "h", "a", "1", "b", "2"}), Number(2));
  EXPECT_EQ(Call(store, {"HSET", "h", "a", "3", "c", "4"}), Number(1));
  EXPECT_EQ(Call(store, {"HGET", "h", "a"}), Text("3"));
  const Reply many = Call(store, {"HMGET", "h", "b", "x", "c"});
  EXPECT_EQ(
      many,
      (Reply(std::vector<std::optional<std::string>>{"2", std::nullopt, "4"})));
  EXPECT_EQ(store.Field("h", "c"), "4");
}

TEST(RedisMap, HasTexts) {
  RedisMap store;
  EXPECT_EQ(Call(store, {"GET", "t"}), kNothing);
  EXPECT_EQ(Call(store, {"SETRANGE", "t", "3", "ab"}), Number(5));
  EXPECT_EQ(Call(store, {"GET", "t"}), Text(std::string("\0\0\0ab", 5)));
  EXPECT_EQ(Call(store, {"SET", "t", "hello"}), Text("OK"));
  EXPECT_EQ(Call(store, {"SETRANGE", "t", "1", "u"}), Number(5));
  EXPECT_EQ(Call(store, {"APPEND", "t", " you"}), Number(9));
  EXPECT_EQ(Call(store, {"GETRANGE", "t", "1", "4"}), Text("ullo"));
  EXPECT_EQ(Call(store, {"GETRANGE", "t", "7", "40"}), Text("ou"));
  EXPECT_EQ(Call(store, {"GETRANGE", "t", "70", "80"}), Text(""));
  EXPECT_EQ(store.Text("t"), "hullo you");
}

TEST(RedisMap, HasSortedSets) {
  RedisMap store;
  EXPECT_EQ(Call(store, {"ZADD", "z", "7", "a"}), Number(1));
  EXPECT_EQ(Call(store, {"ZADD", "z", "8", "a"}), Number(0));
  EXPECT_EQ(Call(store, {"ZSCORE", "z", "a"}), Text("8"));
  EXPECT_EQ(Call(store, {"ZREM", "z", "a"}), Number(1));
  EXPECT_EQ(Call(store, {"ZREM", "z", "a"}), Number(0));
  EXPECT_EQ(Call(store, {"ZSCORE", "z", "a"}), kNothing);
}

TEST(RedisMap, DeletesWhateverItIs) {
  RedisMap store;
  Call(store, {"HSET", "h", "a", "1"});
  Call(store, {"SET", "t", "1"});
  Call(store, {"ZADD", "z", "1", "a"});
  EXPECT_EQ(Call(store, {"DEL", "h", "t", "z", "x"}), Number(3));
  EXPECT_EQ(Call(store, {"GET", "t"}), kNothing);
}

TEST(RedisMap, HasTheTimeThatItIsGiven) {
  RedisMap store;
  store.now_millis = 1'234'567;
  EXPECT_EQ(Call(store, {"TIME"}),
            (Reply(std::vector<std::optional<std::string>>{"1234", "567000"})));
}

TEST(RedisMap, IsItsOwnWhenItIsCopied) {
  RedisMap store;
  Call(store, {"SET", "t", "old"});
  RedisMap copy = store;
  Call(store, {"SET", "t", "new"});
  EXPECT_EQ(copy.Text("t"), "old");
}

TEST(RedisMap, RefusesWhatItDoesNotHave) {
  RedisMap store;
  EXPECT_FALSE(store.Call({}).ok());
  EXPECT_FALSE(store.Call({"KEYS", "*"}).ok());
  EXPECT_FALSE(store.Call({"HSET", "h"}).ok());
}

}  // namespace
}  // namespace txl::history
