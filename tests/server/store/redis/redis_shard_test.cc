// Which Redis may keep sessions.

#include "server/store/redis/redis_shard.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/store/redis/redis_journal.h"
#include "tests/server/store/redis/redis_fixture.h"

namespace txl {
namespace {

constexpr char kInfo[] =
    "# Server\r\nredis_version:7.0.15\r\n# Persistence\r\naof_enabled:1\r\n"
    "# Memory\r\nmaxmemory_policy:noeviction\r\n# Replication\r\n"
    "role:master\r\n";

TEST(CheckRedis, OneThatKeepsWhatItConfirmsIsTaken) {
  EXPECT_TRUE(CheckRedis(kInfo, "always").ok());
  EXPECT_TRUE(CheckRedis(kInfo, "everysec").ok());
  EXPECT_TRUE(
      CheckRedis(absl::StrReplaceAll(kInfo, {{"7.0.15", "10.1.0"}}), "always")
          .ok());
}

TEST(CheckRedis, EachSettingThatLosesSessionsIsNamed) {
  const struct {
    const char* is;
    const char* becomes;
    const char* named;
  } cases[] = {
      {"7.0.15", "6.2.14", "redis_version"},
      {"redis_version:7.0.15\r\n", "", "redis_version"},
      {"role:master", "role:slave", "role"},
      {"aof_enabled:1", "aof_enabled:0", "appendonly"},
      {"noeviction", "allkeys-lru", "maxmemory-policy"},
  };
  for (const auto& one : cases) {
    const absl::Status refused = CheckRedis(
        absl::StrReplaceAll(kInfo, {{one.is, one.becomes}}), "always");
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << one.named;
    EXPECT_NE(refused.message().find(one.named), absl::string_view::npos)
        << refused;
  }
  for (const char* sync : {"no", ""}) {
    const absl::Status refused = CheckRedis(kInfo, sync);
    EXPECT_NE(refused.message().find("appendfsync"), absl::string_view::npos);
  }
}

absl::Status Opened(const testing::RedisServer& redis) {
  return OpenRedisJournal(RedisOptions({&redis})).status();
}

TEST(OpenRedisJournal, RealServersAreRefusedByTheirSettings) {
  const testing::RedisServer primary;
  const testing::RedisServer forgets({"--appendonly", "no"});
  const testing::RedisServer evicts({"--maxmemory-policy", "allkeys-lru"});
  const testing::RedisServer replica(
      {"--replicaof", "127.0.0.1", absl::StrCat(primary.port())});
  for (const auto& [redis, named] :
       {std::pair(&forgets, "appendonly"),
        std::pair(&evicts, "maxmemory-policy"), std::pair(&replica, "role")}) {
    const absl::Status refused = Opened(*redis);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    for (const std::string& word :
         {std::string(named), absl::StrCat(redis->port())}) {
      EXPECT_NE(refused.message().find(word), absl::string_view::npos)
          << refused;
    }
  }
  EXPECT_TRUE(Opened(primary).ok());
}

TEST(OpenRedisJournal, ADiskThatFollowsEachSecondIsSaid) {
  const testing::RedisServer late({"--appendfsync", "everysec"});
  const auto opened = OpenRedisJournal(RedisOptions({&late}));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE(opened->late);
  const testing::RedisServer always;
  EXPECT_FALSE(OpenRedisJournal(RedisOptions({&always}))->late);
}

TEST(OpenRedisJournal, NobodyThereIsSaidWithTheAddress) {
  RedisJournalOptions options;
  options.shards = {{"127.0.0.1", 1}};
  const absl::Status status = OpenRedisJournal(options).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(status.message().find("127.0.0.1:1"), absl::string_view::npos);
}

}  // namespace
}  // namespace txl
