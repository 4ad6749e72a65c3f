#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/session/session_store.h"
#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

class SessionExpiryTest : public StoreTest {};

TEST_F(SessionExpiryTest, ASessionLivesUntilItsTimeToLiveHasPassed) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("a", absl::Seconds(10)).ok());
  clock_.Advance(absl::Seconds(10) - absl::Nanoseconds(1));
  EXPECT_TRUE(store.Get("a").ok());
  clock_.Advance(absl::Nanoseconds(1));
  EXPECT_EQ(Refusal(store.Get("a")), "NOT_FOUND SESSION_EXPIRED");
  ExpectConserved();
}

TEST_F(SessionExpiryTest, WithoutATimeToLiveTheDefaultHolds) {
  SessionStoreOptions options;
  options.default_ttl = absl::Minutes(5);
  SessionStore& store = MakeStore(options);
  EXPECT_EQ(store.Create("a", {})->ttl, absl::Minutes(5));
  clock_.Advance(absl::Minutes(5));
  EXPECT_EQ(Refusal(store.Get("a")), "NOT_FOUND SESSION_EXPIRED");
}

TEST_F(SessionExpiryTest, TheEndOfATurnMovesTheExpiry) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("a", absl::Seconds(10)).ok());
  clock_.Advance(absl::Seconds(9));
  {
    SessionLease lease = Lease("a");
    clock_.Advance(absl::Seconds(9));
  }
  clock_.Advance(absl::Seconds(9));
  const absl::StatusOr<SessionInfo> info = store.Get("a");
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->last_use_time, clock_.Now() - absl::Seconds(9));
  EXPECT_EQ(info->expire_time, clock_.Now() + absl::Seconds(1));
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Refusal(store.Acquire("a")), "NOT_FOUND SESSION_EXPIRED");
}

TEST_F(SessionExpiryTest, LookingAtASessionDoesNotMoveTheExpiry) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("a", absl::Seconds(10)).ok());
  for (int i = 0; i < 9; ++i) {
    clock_.Advance(absl::Seconds(1));
    ASSERT_TRUE(store.Get("a").ok());
    ASSERT_TRUE(store.GetTokens("a", 0, 1).ok());
    ASSERT_EQ(store.List(kDefaultTenant, 0, "")->sessions.size(), 1u);
  }
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Refusal(store.Get("a")), "NOT_FOUND SESSION_EXPIRED");
}

TEST_F(SessionExpiryTest, ABusySessionNeverExpires) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("a", absl::Seconds(1)).ok());
  SessionLease lease = Lease("a");
  clock_.Advance(absl::Hours(24 * 365));
  store.ExpireNow();
  const absl::StatusOr<SessionInfo> info = store.Get("a");
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->last_use_time, clock_.Now());
  EXPECT_EQ(info->expire_time, clock_.Now() + absl::Seconds(1));
  EXPECT_THAT(store.TakeEndedKeys(), ::testing::IsEmpty());
}

TEST_F(SessionExpiryTest, SettingTheWallClockEndsNothingAndSavesNothing) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("a", absl::Seconds(10)).ok());
  clock_.SetNow(clock_.Now() + absl::Hours(24 * 365));
  EXPECT_TRUE(store.Get("a").ok());
  clock_.SetNow(absl::UnixEpoch());
  clock_.Advance(absl::Seconds(10));
  EXPECT_EQ(Refusal(store.Get("a")), "NOT_FOUND SESSION_EXPIRED");
}

TEST_F(SessionExpiryTest, ExpireNowEndsExactlyTheDueSessions) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("b", absl::Seconds(20)).ok());
  ASSERT_TRUE(store.Create("a", absl::Seconds(10)).ok());
  ASSERT_TRUE(store.Create("c", absl::Seconds(30)).ok());
  ASSERT_TRUE(store.Create("same", absl::Seconds(10)).ok());
  store.ExpireNow();
  EXPECT_EQ(store.counts().idle, 4);
  clock_.Advance(absl::Seconds(10));
  store.ExpireNow();
  EXPECT_EQ(store.counts().ended, 2);
  EXPECT_EQ(store.TakeEndedKeys().size(), 2u);
  clock_.Advance(absl::Seconds(10));
  store.ExpireNow();
  EXPECT_EQ(store.counts().ended, 3);
  EXPECT_TRUE(store.Get("c").ok());
  ExpectConserved();
}

// Nobody else looks at the store of an idle server.
TEST_F(SessionExpiryTest, TheCountsNeverShowAnExpiredSession) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("a", absl::Seconds(10)).ok());
  int wakeups = 0;
  store.SetWakeup([&] { ++wakeups; });
  clock_.Advance(absl::Seconds(10));
  EXPECT_EQ(store.counts().idle, 0);
  EXPECT_EQ(store.counts().ended, 1);
  EXPECT_EQ(wakeups, 1) << "its slot is free";
}

TEST_F(SessionExpiryTest, AnExpiredIdCanBeUsedAgain) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("a", absl::Seconds(1)).ok());
  { Lease("a").Append({1, 2}); }
  clock_.Advance(absl::Seconds(1));
  const absl::StatusOr<SessionInfo> again = store.Create("a", {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->position, 0);
  // It is a new session, and deleting it is not expiring.
  ASSERT_TRUE(store.Delete("a").ok());
  EXPECT_EQ(Refusal(store.Get("a")), "NOT_FOUND SESSION_UNKNOWN");
}

TEST_F(SessionExpiryTest, OnlySoManyExpiredIdsAreRemembered) {
  SessionStoreOptions options;
  options.remembered_ends = 2;
  SessionStore& store = MakeStore(options);
  for (const char* id : {"first", "second", "third"}) {
    ASSERT_TRUE(
        store.Create(SessionName::OfDefaultTenant(id), absl::Seconds(1)).ok());
    clock_.Advance(absl::Seconds(1));
  }
  EXPECT_EQ(Refusal(store.Get("first")), "NOT_FOUND SESSION_UNKNOWN");
  EXPECT_EQ(Refusal(store.Get("second")), "NOT_FOUND SESSION_EXPIRED");
  EXPECT_EQ(Refusal(store.Get("third")), "NOT_FOUND SESSION_EXPIRED");
}

TEST_F(SessionExpiryTest, TemporarySessionsLiveAsLongAsTheirLease) {
  SessionStore& store = MakeStore();
  absl::StatusOr<SessionLease> lease = store.AcquireTemporary();
  ASSERT_TRUE(lease.ok()) << lease.status();
  clock_.Advance(absl::Hours(24 * 365));
  store.ExpireNow();
  EXPECT_EQ(store.counts().busy, 1);
  lease->Release();
  EXPECT_EQ(store.counts().busy, 0);
  EXPECT_EQ(store.counts().ended, 1);
  ExpectConserved();
}

}  // namespace
}  // namespace txl
