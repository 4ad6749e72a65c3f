#include "server/session/session_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SessionStoreTest : public StoreTest {};

TEST_F(SessionStoreTest, ANewSessionIsIdleEmptyAndDated) {
  SessionStore& store = MakeStore();
  const absl::StatusOr<SessionInfo> info =
      store.Create("chat-1", absl::Minutes(10));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->session_id, "chat-1");
  EXPECT_EQ(info->state, SessionState::kIdle);
  EXPECT_EQ(info->position, 0);
  EXPECT_EQ(info->create_time, clock_.Now());
  EXPECT_EQ(info->last_use_time, clock_.Now());
  EXPECT_EQ(info->expire_time, clock_.Now() + absl::Minutes(10));
  EXPECT_EQ(info->ttl, absl::Minutes(10));
  EXPECT_EQ(info->memory_bytes, 0);
  EXPECT_EQ(info->last_turn.request_id, "");
}

// The example of session_store.h.
absl::Status RunOneTurn(SessionStore& store) {
  store.Create("verona", std::nullopt).IgnoreError();
  absl::StatusOr<SessionLease> lease = store.Acquire("verona");
  if (!lease.ok()) return lease.status();
  absl::Status room = lease->Reserve(10);
  if (!room.ok()) return room;
  lease->Append({4, 8});
  lease->Append({15});
  lease->SetLastTurn(LastTurn());
  lease->Release();
  return absl::OkStatus();
}

TEST_F(SessionStoreTest, TheHeadersExampleRunsTurnAfterTurn) {
  SessionStore& store = MakeStore();
  EXPECT_TRUE(RunOneTurn(store).ok());
  EXPECT_THAT(TokensOf("verona"), ElementsAre(4, 8, 15));
  EXPECT_TRUE(RunOneTurn(store).ok());
  EXPECT_EQ(TokensOf("verona").size(), 6u);
  const SessionLease held = Lease("verona");
  EXPECT_EQ(Refusal(RunOneTurn(store)), "ABORTED SESSION_BUSY");
}

TEST_F(SessionStoreTest, WithoutAnIdTheServerChoosesOne) {
  SessionStore& store = MakeStore();
  const std::string first = store.Create("", {})->session_id;
  const std::string second = store.Create("", {})->session_id;
  EXPECT_NE(first, second);
  EXPECT_EQ(first.size(), 32u);
  EXPECT_TRUE(store.Get(SessionName::OfDefaultTenant(first)).ok());
  EXPECT_TRUE(store.Get(SessionName::OfDefaultTenant(second)).ok());
}

TEST_F(SessionStoreTest, CreateTimeStaysAndLastUseMoves) {
  SessionStore& store = MakeStore();
  const absl::Time created = clock_.Now();
  ASSERT_TRUE(store.Create("a", {}).ok());
  clock_.Advance(absl::Minutes(3));
  { const SessionLease lease = Lease("a"); }
  clock_.Advance(absl::Minutes(4));
  const SessionInfo info = *store.Get("a");
  EXPECT_EQ(info.create_time, created);
  EXPECT_EQ(info.last_use_time, created + absl::Minutes(3));
  EXPECT_EQ(info.expire_time, info.last_use_time + info.ttl);
}

TEST_F(SessionStoreTest, GetTokensGivesPositionAndIdsOfOneMoment) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("a", {}).ok());
  EXPECT_THAT(TokensOf("a"), IsEmpty());
  SessionLease lease = Lease("a");
  lease.Append({5, 6});
  lease.Append({7});
  const absl::StatusOr<SessionText> text = store.GetTokens("a", 0, 9);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->info.state, SessionState::kBusy);
  EXPECT_EQ(text->info.position, 3);
  EXPECT_THAT(text->token_ids, ElementsAre(5, 6, 7));
  // A copy: what follows does not change it.
  lease.Append({8});
  EXPECT_THAT(text->token_ids, ElementsAre(5, 6, 7));
}

TEST_F(SessionStoreTest, GetTokensGivesThePartThatIsAskedFor) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("a", {}).ok());
  Lease("a").Append({5, 6, 7, 8});
  EXPECT_THAT(store.GetTokens("a", 1, 2)->token_ids, ElementsAre(6, 7));
  EXPECT_THAT(store.GetTokens("a", 3, 100)->token_ids, ElementsAre(8));
  EXPECT_THAT(store.GetTokens("a", 4, 1)->token_ids, IsEmpty());
  EXPECT_THAT(store.GetTokens("a", 100, 1)->token_ids, IsEmpty());
  EXPECT_THAT(store.GetTokens("a", 0, 0)->token_ids, IsEmpty());
  EXPECT_EQ(store.GetTokens("a", 3, 1)->info.position, 4);
}

TEST_F(SessionStoreTest, DeletingAnIdleSessionEndsItAtOnce) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("a", {}).ok());
  const uint64_t key = Lease("a").key();
  ASSERT_TRUE(store.Delete("a").ok());
  EXPECT_EQ(Refusal(store.Get("a")), "NOT_FOUND SESSION_UNKNOWN");
  EXPECT_THAT(store.TakeEndedKeys(), ElementsAre(key));
  EXPECT_FALSE(store.GetKeyState(key).exists);
  ExpectConserved();
}

TEST_F(SessionStoreTest, DeletingABusySessionAsksItsTurnToEnd) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("a", {}).ok());
  SessionLease lease = Lease("a");
  const uint64_t key = lease.key();
  EXPECT_FALSE(lease.delete_requested());
  ASSERT_TRUE(store.Delete("a").ok());
  EXPECT_TRUE(lease.delete_requested());
  EXPECT_EQ(Refusal(store.Get("a")), "NOT_FOUND SESSION_UNKNOWN");
  // Its slot is not free before the turn has let go of it.
  EXPECT_THAT(store.TakeEndedKeys(), IsEmpty());
  EXPECT_TRUE(store.GetKeyState(key).exists);
  EXPECT_TRUE(store.GetKeyState(key).busy);
  EXPECT_EQ(store.counts().busy, 1);
  ExpectConserved();
  lease.Release();
  EXPECT_THAT(store.TakeEndedKeys(), ElementsAre(key));
  EXPECT_FALSE(store.GetKeyState(key).exists);
  EXPECT_EQ(store.counts().busy, 0);
  ExpectConserved();
}

TEST_F(SessionStoreTest, AnIdIsFreeAtOnceAndTheOldTurnCannotHarmTheNewSession) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("a", {}).ok());
  SessionLease old_turn = Lease("a");
  ASSERT_TRUE(store.Delete("a").ok());
  ASSERT_TRUE(store.Create("a", {}).ok());
  SessionLease new_turn = Lease("a");
  EXPECT_NE(old_turn.key(), new_turn.key());
  old_turn.Append({1, 2, 3});
  new_turn.Append({9});
  EXPECT_FALSE(new_turn.delete_requested());
  old_turn.Release();
  EXPECT_THAT(TokensOf("a"), ElementsAre(9));
  new_turn.Release();
  EXPECT_EQ(store.Get("a")->state, SessionState::kIdle);
  EXPECT_EQ(store.TakeEndedKeys().size(), 1u);
  ExpectConserved();
}

TEST_F(SessionStoreTest, EndedKeysAreReportedOnceEach) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("a", absl::Seconds(1)).ok());
  const uint64_t a = Lease("a").key();
  uint64_t temporary = 0;
  {
    const absl::StatusOr<SessionLease> lease = store.AcquireTemporary();
    ASSERT_TRUE(lease.ok());
    temporary = lease->key();
  }
  clock_.Advance(absl::Seconds(1));
  store.ExpireNow();
  EXPECT_THAT(store.TakeEndedKeys(), ElementsAre(temporary, a));
  EXPECT_THAT(store.TakeEndedKeys(), IsEmpty());
}

TEST_F(SessionStoreTest, KeysAreNeverUsedAgain) {
  SessionStore& store = MakeStore();
  uint64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(store.Create("a", {}).ok());
    const uint64_t key = Lease("a").key();
    EXPECT_GT(key, last);
    last = key;
    ASSERT_TRUE(store.Delete("a").ok());
  }
}

TEST_F(SessionStoreTest, KeyStateTellsHowLongASessionHasBeenIdle) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("a", {}).ok());
  SessionLease lease = Lease("a");
  const uint64_t key = lease.key();
  clock_.Advance(absl::Seconds(5));
  EXPECT_TRUE(store.GetKeyState(key).busy);
  EXPECT_EQ(store.GetKeyState(key).idle, absl::ZeroDuration());
  lease.Release();
  clock_.Advance(absl::Seconds(7));
  clock_.SetNow(absl::UnixEpoch());
  EXPECT_TRUE(store.GetKeyState(key).exists);
  EXPECT_FALSE(store.GetKeyState(key).busy);
  EXPECT_EQ(store.GetKeyState(key).idle, absl::Seconds(7));
  EXPECT_FALSE(store.GetKeyState(key + 1000).exists);
}

TEST_F(SessionStoreTest, CountsFollowEveryLife) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("deleted", {}).ok());
  ASSERT_TRUE(store.Create("expired", absl::Seconds(1)).ok());
  ASSERT_TRUE(store.Create("idle", {}).ok());
  ASSERT_TRUE(store.Create("busy", {}).ok());
  const SessionLease busy = Lease("busy");
  const absl::StatusOr<SessionLease> temporary = store.AcquireTemporary();
  ASSERT_TRUE(store.Delete("deleted").ok());
  clock_.Advance(absl::Seconds(1));
  store.ExpireNow();
  const SessionStore::Counts counts = store.counts();
  EXPECT_EQ(counts.created, 5);
  EXPECT_EQ(counts.ended, 2);
  EXPECT_EQ(counts.idle, 1);
  EXPECT_EQ(counts.busy, 2);
  ExpectConserved();
}

TEST_F(SessionStoreTest, ARefusedCallCountsNothing) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("a", {}).ok());
  EXPECT_FALSE(store.Create("a", {}).ok());
  EXPECT_FALSE(store.Create("b c", {}).ok());
  EXPECT_FALSE(store.Acquire("nobody").ok());
  EXPECT_FALSE(store.Delete("nobody").ok());
  EXPECT_EQ(store.counts().created, 1);
  EXPECT_EQ(store.counts().ended, 0);
  EXPECT_EQ(store.counts().idle, 1);
}

}  // namespace
}  // namespace txl
