// The map beside a real redis-server: the same commands, the same answers.

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/store/redis/redis_connection.h"
#include "tests/server/simulation/random.h"
#include "tests/server/store/redis/history/redis_map.h"
#include "tests/server/store/redis/redis_server.h"

namespace txl::history {
namespace {

// As RedisConnection flattens an answer.
struct Flatten {
  Words operator()(std::monostate) const { return {""}; }
  Words operator()(int64_t number) const { return {absl::StrCat(number)}; }
  Words operator()(const std::string& text) const { return {text}; }
  Words operator()(const std::vector<std::optional<std::string>>& texts) const {
    Words words;
    for (const auto& text : texts) words.push_back(text.value_or(""));
    return words;
  }
};

// A command that the function library has, on a few keys of its kind.
Words DrawCommand(simulation::Random& random) {
  static const std::vector<std::string> kForms = {
      "HSET h F V F V", "HSET h F V",     "HGET h F",   "HMGET h F F F",
      "DEL h t x",      "DEL z",          "GET t",      "SET t V",
      "SETRANGE t N V", "GETRANGE t N N", "APPEND t V", "ZADD z N F",
      "ZREM z F",       "ZSCORE z F"};
  Words words = absl::StrSplit(random.Pick(kForms), ' ');
  for (std::string& word : words) {
    if (word == "F") word = absl::StrCat("field", random.Below(4));
    if (word == "N") word = absl::StrCat(random.Below(12));
    if (word == "V") {
      word = std::string(static_cast<size_t>(random.Below(4)),
                         static_cast<char>(random.Below(256)));
    }
  }
  if (random.Chance(0.5)) words[1] += "2";
  return words;
}

TEST(RedisMap, AnswersAsRedisDoes) {
  constexpr int kCommands = 20'000;
  testing::RedisServer redis({"--appendfsync", "no"});
  auto connection =
      RedisConnection::Open({"127.0.0.1", redis.port()}, absl::Seconds(10));
  ASSERT_TRUE(connection.ok()) << connection.status();
  simulation::Random random(1);
  std::vector<RedisCommand> commands;
  for (int i = 0; i < kCommands; ++i) commands.push_back(DrawCommand(random));
  std::vector<RedisAnswer> answers;
  ASSERT_TRUE((*connection)->Call(commands, &answers).ok());
  ASSERT_EQ(answers.size(), commands.size());
  RedisMap store;
  for (int i = 0; i < kCommands; ++i) {
    const absl::StatusOr<Reply> reply = store.Call(commands[i]);
    ASSERT_TRUE(reply.ok() && answers[i].ok()) << answers[i].status();
    ASSERT_EQ(std::visit(Flatten(), *reply), *answers[i])
        << i << ": " << absl::StrJoin(commands[i], " ");
  }
}

}  // namespace
}  // namespace txl::history
