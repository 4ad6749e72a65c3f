#include "server/quota/token_bucket.h"

#include <cstdint>
#include <random>

#include "gtest/gtest.h"

namespace txl {
namespace {

constexpr absl::Duration kMinute = absl::Minutes(1);
constexpr absl::Duration kStart = absl::Seconds(1000);

TEST(TokenBucket, BeginsFullAndHoldsNoMore) {
  TokenBucket bucket(10, kMinute, kStart);
  EXPECT_EQ(bucket.Available(kStart), 10);
  EXPECT_EQ(bucket.Available(kStart + absl::Hours(1)), 10);
}

TEST(TokenBucket, TakesAllOrNothing) {
  TokenBucket bucket(10, kMinute, kStart);
  EXPECT_TRUE(bucket.Take(7, kStart));
  EXPECT_FALSE(bucket.Take(4, kStart));
  EXPECT_TRUE(bucket.Take(3, kStart));
  EXPECT_FALSE(bucket.Take(1, kStart));
}

TEST(TokenBucket, RefillsSteadily) {
  TokenBucket bucket(60, kMinute, kStart);
  ASSERT_TRUE(bucket.Take(60, kStart));
  EXPECT_EQ(bucket.Available(kStart + absl::Milliseconds(999)), 0);
  EXPECT_EQ(bucket.Available(kStart + absl::Seconds(1)), 1);
  EXPECT_EQ(bucket.Available(kStart + absl::Seconds(30)), 30);
}

TEST(TokenBucket, SaysWhenTokensAreThereAndTheyAre) {
  for (const int64_t limit : {1, 7, 60, 999, 1'000'000}) {
    for (const int64_t wanted : {int64_t{1}, (limit + 1) / 2, limit}) {
      TokenBucket bucket(limit, kMinute, kStart);
      ASSERT_TRUE(bucket.Take(limit, kStart));
      const auto ready = bucket.ReadyAt(wanted, kStart);
      ASSERT_TRUE(ready.has_value());
      EXPECT_NEAR(absl::ToDoubleSeconds(*ready - kStart), 60.0 * wanted / limit,
                  1e-6);
      EXPECT_FALSE(bucket.Take(wanted, *ready - absl::Microseconds(100)));
      EXPECT_TRUE(bucket.Take(wanted, *ready)) << wanted << " of " << limit;
    }
  }
}

TEST(TokenBucket, MoreThanItHoldsNeverComes) {
  TokenBucket bucket(10, kMinute, kStart);
  EXPECT_FALSE(bucket.ReadyAt(11, kStart).has_value());
  EXPECT_EQ(bucket.ReadyAt(10, kStart), kStart);
}

TEST(TokenBucket, WhatComesBackFitsOnlyUpToTheLimit) {
  TokenBucket bucket(10, kMinute, kStart);
  ASSERT_TRUE(bucket.Take(2, kStart));
  bucket.GiveBack(5);
  EXPECT_EQ(bucket.Available(kStart), 10);
}

TEST(TokenBucket, ANewLimitKeepsWhatFits) {
  TokenBucket bucket(10, kMinute, kStart);
  ASSERT_TRUE(bucket.Take(4, kStart));
  bucket.SetLimit(5, kStart);
  EXPECT_EQ(bucket.Available(kStart), 5);
  bucket.SetLimit(60, kStart);
  EXPECT_EQ(bucket.Available(kStart), 5);
  EXPECT_EQ(bucket.Available(kStart + absl::Seconds(1)), 6);
}

TEST(TokenBucket, ATimeThatGoesBackChangesNothing) {
  TokenBucket bucket(60, kMinute, kStart);
  ASSERT_TRUE(bucket.Take(60, kStart));
  EXPECT_EQ(bucket.Available(kStart + absl::Seconds(2)), 2);
  EXPECT_EQ(bucket.Available(kStart), 2);
}

// Whatever is asked for when: over any time t it lets through at most the limit
// and what flows in during t.
TEST(TokenBucket, LetsThroughNoTokenMore) {
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    std::mt19937 random(seed);
    const auto limit = static_cast<int64_t>(1 + random() % 500);
    TokenBucket bucket(limit, kMinute, kStart);
    absl::Duration now = kStart;
    int64_t taken = 0;
    for (int i = 0; i < 5000; ++i) {
      now += absl::Microseconds(random() % 100'000);
      const auto wanted = static_cast<int64_t>(1 + random() % 9);
      if (bucket.Take(wanted, now)) taken += wanted;
      const double most =
          limit * (1 + absl::FDivDuration(now - kStart, kMinute));
      ASSERT_LE(static_cast<double>(taken), most + 1e-3) << "seed " << seed;
    }
    EXPECT_GT(taken, limit);
  }
}

}  // namespace
}  // namespace txl
