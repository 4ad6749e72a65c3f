// What the ids of sessions take: reserved before a turn runs, counted, bounded.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "server/session/token_sequence.h"
#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

class SessionReserveTest : public StoreTest {
 protected:
  SessionStore& MakeBounded(int64_t id_bytes, int64_t tokens = 1 << 20) {
    SessionStoreOptions options;
    options.id_bytes = id_bytes;
    options.max_session_tokens = tokens;
    options.memory_retry = absl::Seconds(3);
    options.temporary_reserve = 0;
    SessionStore& store = MakeStore(options);
    EXPECT_TRUE(store.Create("a", {}).ok());
    one_session_ = store.counts().id_bytes;
    EXPECT_GT(one_session_, 0);
    return store;
  }
  int64_t id_bytes() const { return store_->counts().id_bytes; }
  static int64_t BytesFor(int64_t tokens) {
    return TokenSequence::BytesFor(tokens);
  }
  static std::vector<int32_t> Ids(int64_t count) {
    return std::vector<int32_t>(static_cast<size_t>(count), 7);
  }

  int64_t one_session_ = 0;
};

TEST_F(SessionReserveTest, AReservationIsTakenAtOnceAndItsRestGivenBack) {
  MakeBounded(1 << 20);
  SessionLease lease = Lease("a");
  ASSERT_TRUE(lease.Reserve(10'000).ok());
  EXPECT_EQ(id_bytes(), one_session_ + BytesFor(10'000));
  lease.Append(Ids(300));
  EXPECT_EQ(id_bytes(), one_session_ + BytesFor(10'000));
  lease.Release();
  EXPECT_EQ(id_bytes(), one_session_ + BytesFor(300));
  EXPECT_EQ(store_->Get("a")->memory_bytes, BytesFor(300));
  ASSERT_TRUE(store_->Delete("a").ok());
  EXPECT_EQ(id_bytes(), 0);
}

TEST_F(SessionReserveTest, AnotherReservationTakesTheFirstOnesPlace) {
  MakeBounded(1 << 20);
  SessionLease lease = Lease("a");
  ASSERT_TRUE(lease.Reserve(10'000).ok());
  lease.Append(Ids(100));
  ASSERT_TRUE(lease.Reserve(50).ok());
  EXPECT_EQ(id_bytes(), one_session_ + BytesFor(150));
  ASSERT_TRUE(lease.Reserve(0).ok());
  EXPECT_EQ(id_bytes(), one_session_ + BytesFor(100));
}

TEST_F(SessionReserveTest, ASessionHoldsSoManyTokensAndNoMore) {
  MakeBounded(1 << 20, 100);
  SessionLease lease = Lease("a");
  EXPECT_EQ(lease.room(), 100);
  lease.Append(Ids(60));
  EXPECT_EQ(lease.room(), 40);
  const absl::Status status = lease.Reserve(41);
  EXPECT_EQ(Refusal(status), "INVALID_ARGUMENT OVER_LIMIT session_id");
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("100"));
  EXPECT_TRUE(lease.Reserve(40).ok());
  lease.Append(Ids(40));
  EXPECT_EQ(lease.room(), 0);
  EXPECT_TRUE(lease.Reserve(0).ok());
  EXPECT_EQ(Refusal(lease.Reserve(1)),
            "INVALID_ARGUMENT OVER_LIMIT session_id");
}

TEST_F(SessionReserveTest, AFullBudgetRefusesWithTheTimeToRetry) {
  MakeBounded(100'000);
  ASSERT_TRUE(store_->Create("b", {}).ok());
  SessionLease a = Lease("a");
  ASSERT_TRUE(a.Reserve(10'000).ok());
  SessionLease b = Lease("b");
  const int64_t before = id_bytes();
  const absl::Status status = b.Reserve(20'000);
  EXPECT_EQ(Refusal(status), "RESOURCE_EXHAUSTED NO_SESSION_MEMORY");
  EXPECT_EQ(GetErrorDetails(status).retry, absl::Seconds(3));
  EXPECT_EQ(id_bytes(), before);
  a.Release();
  EXPECT_TRUE(b.Reserve(20'000).ok());
  EXPECT_LE(id_bytes(), 100'000);
}

TEST_F(SessionReserveTest, WhatWasNotReservedIsCountedAllTheSame) {
  MakeBounded(10'000);
  SessionLease lease = Lease("a");
  ASSERT_TRUE(lease.Reserve(10).ok());
  lease.Append(Ids(5'000));
  EXPECT_EQ(lease.position(), 5'000);
  EXPECT_EQ(id_bytes(), one_session_ + BytesFor(5'000));
  EXPECT_EQ(Refusal(store_->Create("b", {})),
            "RESOURCE_EXHAUSTED NO_SESSION_MEMORY");
}

TEST_F(SessionReserveTest, WhoTakesOverReservesForItself) {
  MakeBounded(1 << 20);
  const TurnIdentity turn{"r", "d"};
  auto running = store_->AcquireFor("a", turn, nullptr);
  ASSERT_TRUE(running.ok());
  ASSERT_TRUE((*running)->Reserve(10'000).ok());
  SessionLease next;
  const auto waits = store_->AcquireFor(
      "a", turn,
      [&](absl::StatusOr<SessionLease> lease) { next = *std::move(lease); });
  ASSERT_TRUE(waits.ok());
  (*running)->Append(Ids(10));
  (*running)->Release();
  EXPECT_EQ(id_bytes(), one_session_ + BytesFor(10));
  ASSERT_TRUE(next.Reserve(20).ok());
  EXPECT_EQ(id_bytes(), one_session_ + BytesFor(30));
}

TEST_F(SessionReserveTest, ATemporarySessionIsCountedWhileItLives) {
  MakeBounded(1 << 20);
  {
    absl::StatusOr<SessionLease> lease = store_->AcquireTemporary();
    ASSERT_TRUE(lease.ok());
    ASSERT_TRUE(lease->Reserve(1'000).ok());
    EXPECT_EQ(id_bytes(), 2 * one_session_ + BytesFor(1'000));
  }
  EXPECT_EQ(id_bytes(), one_session_);
}

// 10 million ids were one array of 40 MB, moved while everybody waited.
TEST_F(SessionReserveTest, AReaderTakesAPageOfAVeryLongSession) {
  MakeBounded(1 << 30, 20 << 20);
  SessionLease lease = Lease("a");
  constexpr int64_t kTokens = 3 << 20;
  for (int64_t i = 0; i < kTokens; i += 4096) {
    lease.Append(std::vector<int32_t>(4096, static_cast<int32_t>(i / 4096)));
  }
  const auto page = store_->GetTokens("a", kTokens - 4098, 4);
  ASSERT_TRUE(page.ok());
  const int32_t last = kTokens / 4096 - 1;
  EXPECT_THAT(page->token_ids,
              ::testing::ElementsAre(last - 1, last - 1, last, last));
  EXPECT_EQ(page->info.position, kTokens);
}

}  // namespace
}  // namespace txl
