#include "server/store/redis/redis_address.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace txl {
namespace {

TEST(RedisAddress, ShardsStandBehindEachOtherWithCommas) {
  const auto addresses = ParseRedisAddresses(
      "redis://a:1,redis://127.0.0.1:6379/,redis://[::1]:2");
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  ASSERT_EQ(addresses->size(), 3u);
  EXPECT_EQ((*addresses)[0].text(), "a:1");
  EXPECT_EQ((*addresses)[1].host, "127.0.0.1");
  EXPECT_EQ((*addresses)[1].port, 6379);
  EXPECT_EQ((*addresses)[2].host, "::1");
  EXPECT_EQ((*addresses)[2].text(), "[::1]:2");
}

TEST(RedisAddress, WhatIsNoneIsNamed) {
  for (const char* text :
       {"", "a:1", "redis://a", "redis://:1", "redis://a:0", "redis://a:65536",
        "redis://a:x", "rediss://a:1", "redis://user:secret@a:1",
        "redis://a:1/0", "redis://[::1:2", "redis://::1:2",
        "redis://b:2,redis://a"}) {
    const auto addresses = ParseRedisAddresses(text);
    ASSERT_TRUE(absl::IsInvalidArgument(addresses.status())) << text;
    EXPECT_NE(addresses.status().message().find("redis://HOST:PORT"),
              absl::string_view::npos);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(
      ParseRedisAddresses("redis://a:1,redis://a:1").status()));
}

// By CRC-32C, whose value for "123456789" its authors give: 0xe3069283.
TEST(RedisAddress, AShardIsAFunctionOfTheName) {
  EXPECT_EQ(ShardOf("123456789", 1), 0u);
  EXPECT_EQ(ShardOf("123456789", 10), 0xe3069283u % 10);
  std::vector<int> sessions(8);
  for (int i = 0; i < 8000; ++i) {
    ++sessions[ShardOf(absl::StrCat("default/session-", i), 8)];
  }
  for (const int count : sessions) EXPECT_NEAR(count, 1000, 150);
}

}  // namespace
}  // namespace txl
