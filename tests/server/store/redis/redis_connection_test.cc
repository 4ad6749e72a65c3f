// How a Redis is named, and which may keep sessions.

#include "server/store/redis/redis_connection.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/store/redis/redis_journal.h"
#include "tests/server/store/redis/redis_fixture.h"

namespace txl {
namespace {

TEST(RedisAddress, IsAHostAndAPort) {
  const struct {
    const char* given;
    const char* host;
    int port;
    const char* text;
  } cases[] = {
      {"redis://a:1", "a", 1, "a:1"},
      {"redis://127.0.0.1:6379/", "127.0.0.1", 6379, "127.0.0.1:6379"},
      {"redis://[::1]:2", "::1", 2, "[::1]:2"},
  };
  for (const auto& one : cases) {
    const auto address = ParseRedisAddress(one.given);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->host, one.host);
    EXPECT_EQ(address->port, one.port);
    EXPECT_EQ(address->text(), one.text);
  }
}

TEST(RedisAddress, WhatIsNoneIsNamed) {
  for (const char* text :
       {"", "a:1", "redis://a", "redis://:1", "redis://a:0", "redis://a:65536",
        "redis://a:x", "rediss://a:1", "redis://user:secret@a:1",
        "redis://a:1/0", "redis://[::1:2", "redis://::1:2"}) {
    const auto address = ParseRedisAddress(text);
    ASSERT_TRUE(absl::IsInvalidArgument(address.status())) << text;
    EXPECT_NE(address.status().message().find("redis://HOST:PORT"),
              absl::string_view::npos);
  }
}

TEST(RedisAddress, SeveralAreRefused) {
  for (const char* text : {"redis://a:1,redis://b:2", "redis://a:1,"}) {
    const auto address = ParseRedisAddress(text);
    ASSERT_TRUE(absl::IsInvalidArgument(address.status())) << text;
    EXPECT_NE(address.status().message().find("one address"),
              absl::string_view::npos);
  }
}

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
  return RedisJournal::Open(RedisOptions(redis)).status();
}

TEST(RedisJournalOpen, RealServersAreRefusedByTheirSettings) {
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

TEST(RedisJournalOpen, ADiskThatFollowsEachSecondIsSaid) {
  const testing::RedisServer late({"--appendfsync", "everysec"});
  const auto opened = RedisJournal::Open(RedisOptions(late));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE((*opened)->late());
  const testing::RedisServer always;
  EXPECT_FALSE((*RedisJournal::Open(RedisOptions(always)))->late());
}

TEST(RedisJournalOpen, NobodyThereIsSaidWithTheAddress) {
  RedisJournalOptions options;
  options.address = {"127.0.0.1", 1};
  const absl::Status status = RedisJournal::Open(options).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(status.message().find("127.0.0.1:1"), absl::string_view::npos);
}

}  // namespace
}  // namespace txl
