// Who gives way when sessions or their memory run out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/text/byte_vocabulary.h"
#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

class SessionRoomTest : public StoreTest {
 protected:
  SessionRoomTest() {
    options_.max_sessions = 32;  // two of them for temporary ones
    options_.max_ttl = absl::Hours(24 * 30);
    options_.empty_grace = options_.memory_retry = absl::Seconds(1);
  }

  // Named s0, s1, ..., one a second; how many there was room for.
  int CreateMany(int count, bool empty) {
    int created = 0;
    for (int i = 0; i < count; ++i) {
      const std::string id = absl::StrCat("s", i);
      if (!store_
               ->Create(SessionName::OfDefaultTenant(id), absl::Hours(24 * 30))
               .ok())
        continue;
      ++created;
      if (!empty) Lease(id).Append({1});
      clock_.Advance(absl::Seconds(1));
    }
    return created;
  }

  SessionStoreOptions options_;
};

TEST_F(SessionRoomTest, NamedSessionsLeaveRoomForTurnsWithoutOne) {
  SessionStore& store = MakeStore(options_);
  EXPECT_EQ(CreateMany(100, /*empty=*/false), 30);
  std::vector<SessionLease> temporary;
  for (int i = 0; i < 2; ++i) {
    absl::StatusOr<SessionLease> lease = store.AcquireTemporary();
    ASSERT_TRUE(lease.ok()) << lease.status();
    temporary.push_back(*std::move(lease));
  }
  EXPECT_EQ(Refusal(store.AcquireTemporary()),
            "RESOURCE_EXHAUSTED NO_SESSION_MEMORY");
  temporary.pop_back();
  EXPECT_TRUE(store.AcquireTemporary().ok());
  ExpectConserved();
}

TEST_F(SessionRoomTest, TemporarySessionsMayTakeAllThatIsThere) {
  SessionStore& store = MakeStore(options_);
  std::vector<SessionLease> temporary;
  for (int i = 0; i < 32; ++i) {
    absl::StatusOr<SessionLease> lease = store.AcquireTemporary();
    ASSERT_TRUE(lease.ok()) << lease.status();
    temporary.push_back(*std::move(lease));
  }
  EXPECT_EQ(Refusal(store.Create("a", {})),
            "RESOURCE_EXHAUSTED NO_SESSION_MEMORY");
}

TEST_F(SessionRoomTest, TheEmptySessionUnusedForLongestGivesWay) {
  SessionStore& store = MakeStore(options_);
  ASSERT_EQ(CreateMany(30, /*empty=*/true), 30);
  Lease("s0").Release();  // used, still empty
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(store.Create("new", {}).ok());
  EXPECT_EQ(Refusal(store.Get("s1")), "NOT_FOUND SESSION_EVICTED");
  EXPECT_TRUE(store.Get("s0").ok());
  EXPECT_TRUE(store.Get("s2").ok());
  EXPECT_EQ(store.TakeEndedKeys().size(), 1u);
  ExpectConserved();
  // Its owner makes it again, and loses nothing by it.
  EXPECT_TRUE(store.Create("s1", {}).ok());
  EXPECT_EQ(Refusal(store.Get("s2")), "NOT_FOUND SESSION_EVICTED");
}

TEST_F(SessionRoomTest, ANewSessionHasTimeToBeUsedBeforeItGivesWay) {
  SessionStore& store = MakeStore(options_);
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(
        store.Create(SessionName::OfDefaultTenant(absl::StrCat("s", i)), {})
            .ok());
  }
  clock_.Advance(absl::Seconds(1) - absl::Nanoseconds(1));
  const absl::Status refused = store.Create("new", {}).status();
  EXPECT_EQ(Refusal(refused), "RESOURCE_EXHAUSTED NO_SESSION_MEMORY");
  clock_.Advance(*GetErrorDetails(refused).retry);
  EXPECT_TRUE(store.Create("new", {}).ok());
}

TEST_F(SessionRoomTest, SessionsThatHoldTokensOrRunATurnNeverGiveWay) {
  SessionStore& store = MakeStore(options_);
  ASSERT_EQ(CreateMany(29, /*empty=*/false), 29);
  ASSERT_TRUE(store.Create("busy", {}).ok());
  const SessionLease busy = Lease("busy");
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(Refusal(store.Create("new", {})),
            "RESOURCE_EXHAUSTED NO_SESSION_MEMORY");
  EXPECT_EQ(store.counts().ended, 0);
}

// Idle sessions of 30 days until no more are made.
TEST_F(SessionRoomTest, SquattersKeepNobodyOut) {
  options_.max_sessions = 2'000;
  SessionStore& store = MakeStore(options_);
  for (int i = 0; i < 2'000; ++i) {
    (void)store.Create(SessionName::OfDefaultTenant(absl::StrCat("squat", i)),
                       absl::Hours(24 * 30));
  }
  EXPECT_TRUE(store.AcquireTemporary().ok());
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(store.Create("mine", {}).ok());
  EXPECT_TRUE(store.Acquire("mine").ok());
}

TEST_F(SessionRoomTest, EvenWithoutAReserveEmptySessionsGiveWayToATurn) {
  options_.max_sessions = 3;  // a sixteenth of so few is none
  SessionStore& store = MakeStore(options_);
  for (const char* id : {"a", "b", "c"}) {
    ASSERT_TRUE(store.Create(SessionName::OfDefaultTenant(id), {}).ok());
  }
  EXPECT_EQ(Refusal(store.AcquireTemporary()),
            "RESOURCE_EXHAUSTED NO_SESSION_MEMORY");
  clock_.Advance(absl::Seconds(1));
  const auto lease = store.AcquireTemporary();
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_EQ(Refusal(store.Get("a")), "NOT_FOUND SESSION_EVICTED");
}

TEST_F(SessionRoomTest, BytesForTokensComeFromEmptySessionsToo) {
  options_.id_bytes = 64 << 10;
  options_.temporary_reserve = 0;
  SessionStore& store = MakeStore(options_);
  ASSERT_EQ(CreateMany(31, /*empty=*/true), 31);
  const int64_t full = store.counts().id_bytes;
  SessionLease lease = Lease("s30");
  ASSERT_TRUE(lease.Reserve(4'096).ok());
  EXPECT_LE(store.counts().id_bytes, options_.id_bytes);
  EXPECT_GT(store.counts().ended, 0);
  EXPECT_FALSE(store.Get("s0").ok());
  EXPECT_TRUE(store.Get("s29").ok());
  // What never fits ends nobody's session.
  const int64_t ended = store.counts().ended;
  EXPECT_EQ(Refusal(lease.Reserve(1 << 20)),
            "RESOURCE_EXHAUSTED NO_SESSION_MEMORY");
  EXPECT_EQ(store.counts().ended, ended);
  EXPECT_GT(full, 31 * 1'000);
}

TEST_F(SessionRoomTest, MemoriesOfEndedSessionsAreCountedAndGiveWayFirst) {
  options_.id_bytes = 20'000;
  SessionStore& store = MakeStore(options_);
  for (int i = 0; i < 100; ++i) {
    const std::string id = absl::StrCat("gone", i);
    ASSERT_TRUE(
        store.Create(SessionName::OfDefaultTenant(id), absl::Seconds(1)).ok())
        << i;
    clock_.Advance(absl::Seconds(1));
    store.ExpireNow();
    ASSERT_LE(store.counts().id_bytes, options_.id_bytes);
  }
  EXPECT_EQ(Refusal(store.Get("gone99")), "NOT_FOUND SESSION_EXPIRED");
  EXPECT_EQ(Refusal(store.Get("gone0")), "NOT_FOUND SESSION_UNKNOWN");
}

// Measured at the allocator, not by the store's own count. (A sanitizer's
// allocator says nothing of this kind, and then this shows nothing.)
TEST_F(SessionRoomTest, ASessionTakesNoMoreThanItIsCountedWith) {
  constexpr int kSessions = 2'000;
  const ByteVocabulary vocabulary;
  options_.vocabulary = &vocabulary;
  options_.max_sessions = 100'000;
  SessionStore& store = MakeStore(options_);
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < kSessions; ++i) {
    const std::string id = absl::StrCat(std::string(58, 'x'), 100'000 + i);
    ASSERT_TRUE(store.Create(SessionName::OfDefaultTenant(id), {}).ok());
    for (int turn = 0; turn < 20; ++turn) {
      LastTurn last;
      last.request_id = absl::StrCat(std::string(62, 'r'), 10 + turn);
      last.outcome = "A_REASON_OF_MANY_LETTERS";
      SessionLease lease = Lease(id);
      if (turn == 0) lease.Append({1});
      lease.SetLastTurn(last);
    }
  }
  const auto taken = static_cast<int64_t>(mallinfo2().uordblks - before);
  EXPECT_LE(taken, store.counts().id_bytes);
  RecordProperty("bytes_per_session", static_cast<int>(taken / kSessions));
}

}  // namespace
}  // namespace txl
