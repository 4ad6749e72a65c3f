#include "server/quota/tenant_account.h"

#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/base/error.h"

namespace txl {
namespace {

constexpr absl::Duration kNow = absl::Seconds(50);

// "QUOTA name"; "OK".
std::string Refusal(const absl::Status& status) {
  if (status.ok()) return "OK";
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  const ErrorDetails details = GetErrorDetails(status);
  return details.reason + " " + details.metadata.at("quota");
}

TEST(TenantAccount, WithoutLimitsEverythingIsAllowed) {
  TenantAccount account("t", TenantLimits(), 0, kNow);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(account.AdmitCall(kNow).ok());
    EXPECT_TRUE(account.StartTurn(1'000'000, kNow).ok());
  }
  EXPECT_FALSE(account.PausedUntil(kNow).has_value());
  EXPECT_GT(account.TokensOut(kNow), 1'000'000'000);
  EXPECT_EQ(account.longest_turn(), absl::InfiniteDuration());
  EXPECT_EQ(account.weight(), 1);
}

TEST(TenantAccount, SaysWhatItMayTakeAndHasTaken) {
  TenantLimits limits;
  limits.weight = 2;
  limits.turns = 4;
  limits.calls_per_second = 10;
  limits.tokens_in_per_minute = 600;
  TenantAccount account("t", limits, 0, kNow);
  EXPECT_TRUE(account.AdmitCall(kNow).ok());
  EXPECT_TRUE(account.StartTurn(100, kNow).ok());
  EXPECT_TRUE(account.StartTurn(50, kNow).ok());
  account.EndTurn();
  const TenantUse use = account.Use(kNow);
  EXPECT_EQ(use.tenant, "t");
  EXPECT_EQ(use.limits.weight, 2);
  EXPECT_EQ(use.limits.turns, 4);
  EXPECT_EQ(use.turns, 1);
  EXPECT_EQ(use.calls, 1);
  EXPECT_EQ(use.tokens_in, 150);
  EXPECT_FALSE(use.tokens_out.has_value()) << "it has no limit";
  // 10 tokens a second come back, the calls all do.
  const TenantUse later = account.Use(kNow + absl::Seconds(5));
  EXPECT_EQ(later.tokens_in, 100);
  EXPECT_EQ(later.calls, 0);
  EXPECT_EQ(later.turns, 1);
}

TEST(TenantAccount, CallsPerSecondAreCounted) {
  TenantLimits limits;
  limits.calls_per_second = 3;
  TenantAccount account("t", limits, 0, kNow);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(account.AdmitCall(kNow).ok());
  const absl::Status status = account.AdmitCall(kNow);
  EXPECT_EQ(Refusal(status), "QUOTA calls_per_second");
  const auto retry = GetErrorDetails(status).retry;
  ASSERT_TRUE(retry.has_value());
  EXPECT_NEAR(absl::ToDoubleSeconds(*retry), 1.0 / 3, 1e-3);
  EXPECT_TRUE(account.AdmitCall(kNow + *retry).ok());
}

TEST(TenantAccount, TurnsAtATimeAreCounted) {
  TenantLimits limits;
  limits.turns = 2;
  TenantAccount account("t", limits, 0, kNow);
  EXPECT_TRUE(account.StartTurn(1, kNow).ok());
  EXPECT_TRUE(account.StartTurn(1, kNow).ok());
  const absl::Status status = account.StartTurn(1, kNow);
  EXPECT_EQ(Refusal(status), "QUOTA turns");
  EXPECT_TRUE(GetErrorDetails(status).retry.has_value());
  account.EndTurn();
  EXPECT_TRUE(account.StartTurn(1, kNow).ok());
}

TEST(TenantAccount, TokensOfPromptsAreCountedAndComeBackUnused) {
  TenantLimits limits;
  limits.tokens_in_per_minute = 120;
  TenantAccount account("t", limits, 0, kNow);
  EXPECT_TRUE(account.StartTurn(100, kNow).ok());
  const absl::Status status = account.StartTurn(40, kNow);
  EXPECT_EQ(Refusal(status), "QUOTA tokens_in_per_minute");
  EXPECT_NEAR(absl::ToDoubleSeconds(*GetErrorDetails(status).retry), 10, 1e-3);
  account.EndTurn(100);
  EXPECT_TRUE(account.StartTurn(120, kNow).ok());
}

TEST(TenantAccount, CachedTokensComeBackAtTheEndOfTheirTurn) {
  TenantLimits limits;
  limits.tokens_in_per_minute = 120;
  TenantAccount account("t", limits, 0, kNow);
  ASSERT_TRUE(account.StartTurn(100, kNow).ok());
  account.EndTurn(0, 90);
  EXPECT_EQ(account.Use(kNow).tokens_in, 10);
  EXPECT_EQ(account.Use(kNow).turns, 0);
}

TEST(TenantAccount, CachedTokensStayTakenWhereTheyCount) {
  TenantLimits limits;
  limits.tokens_in_per_minute = 120;
  limits.count_cached_tokens = true;
  TenantAccount account("t", limits, 0, kNow);
  ASSERT_TRUE(account.StartTurn(100, kNow).ok());
  account.EndTurn(0, 90);
  EXPECT_EQ(account.Use(kNow).tokens_in, 100);
  ASSERT_TRUE(account.StartTurn(20, kNow).ok());
  account.EndTurn(20);
  EXPECT_EQ(account.Use(kNow).tokens_in, 100) << "a turn that did not run";
}

TEST(TenantAccount, WhetherCachedTokensCountIsDecidedAtTheTurnsEnd) {
  TenantLimits limits;
  limits.tokens_in_per_minute = 120;
  TenantAccount account("t", limits, 0, kNow);
  ASSERT_TRUE(account.StartTurn(100, kNow).ok());
  limits.count_cached_tokens = true;
  account.SetLimits(limits, kNow);
  account.EndTurn(0, 90);
  EXPECT_EQ(account.Use(kNow).tokens_in, 100);
}

TEST(TenantAccount, CachedTokensOfATenantWithoutQuotaChangeNothing) {
  TenantAccount account("t", TenantLimits(), 0, kNow);
  ASSERT_TRUE(account.StartTurn(100, kNow).ok());
  account.EndTurn(0, 100);
  EXPECT_EQ(account.Use(kNow).turns, 0);
  EXPECT_FALSE(account.Use(kNow).tokens_in.has_value());
}

TEST(TenantAccount, APromptOverTheQuotaIsNotToldToComeAgain) {
  TenantLimits limits;
  limits.tokens_in_per_minute = 120;
  TenantAccount account("t", limits, 0, kNow);
  const absl::Status status = account.StartTurn(121, kNow);
  EXPECT_EQ(Refusal(status), "QUOTA tokens_in_per_minute");
  EXPECT_FALSE(GetErrorDetails(status).retry.has_value());
}

TEST(TenantAccount, TokensOutRunOutAndRefill) {
  TenantLimits limits;
  limits.tokens_out_per_minute = 60;
  TenantAccount account("t", limits, 0, kNow);
  EXPECT_EQ(account.TokensOut(kNow), 60);
  account.TakeTokensOut(60, kNow);
  EXPECT_EQ(account.TokensOut(kNow), 0);
  EXPECT_EQ(account.PausedUntil(kNow), kNow + absl::Seconds(1));
  account.GiveBackTokensOut(1);
  EXPECT_FALSE(account.PausedUntil(kNow).has_value());
}

TEST(TenantAccount, NewLimitsCountWhatIsTaken) {
  TenantLimits limits;
  limits.turns = 5;
  limits.tokens_out_per_minute = 60;
  TenantAccount account("t", limits, 0, kNow);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(account.StartTurn(1, kNow).ok());
  account.TakeTokensOut(50, kNow);
  limits.turns = 3;
  limits.tokens_out_per_minute = 30;
  limits.weight = 7;
  limits.sessions = 9;
  account.SetLimits(limits, kNow);
  EXPECT_EQ(account.weight(), 7);
  EXPECT_EQ(account.limits().sessions, 9);
  EXPECT_EQ(account.TokensOut(kNow), 10);
  for (int i = 0; i < 3; ++i) account.EndTurn();
  EXPECT_TRUE(account.StartTurn(1, kNow).ok());
  EXPECT_FALSE(account.StartTurn(1, kNow).ok());
  account.SetLimits(TenantLimits(), kNow);
  EXPECT_TRUE(account.StartTurn(1, kNow).ok());
  EXPECT_FALSE(account.PausedUntil(kNow).has_value());
}

TEST(TenantAccount, ATurnOverItsLengthHasTheQuotasName) {
  const absl::Status status = TurnOverQuota(absl::Minutes(10));
  EXPECT_EQ(Refusal(status), "QUOTA longest_turn");
  EXPECT_NE(status.message().find("10m"), std::string::npos);
}

TEST(TenantAccount, SixtyFourThreadsGetNoTurnMoreThanOne) {
  TenantLimits limits;
  limits.turns = 10;
  limits.tokens_in_per_minute = 1000;
  TenantAccount account("t", limits, 0, kNow);
  std::atomic<int64_t> tokens{0};
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 64; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 200; ++turn) {
        if (!account.StartTurn(3, kNow).ok()) continue;
        tokens += 3;
        const int now = ++running;
        for (int seen = most; now > seen;) {
          if (most.compare_exchange_weak(seen, now)) break;
        }
        --running;
        account.EndTurn();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tokens, 999);
  EXPECT_LE(most, 10);
}

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
