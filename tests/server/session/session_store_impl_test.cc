// Who gives way when sessions or their memory run out.
#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
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

// Turns with an identity: one runs, the same request takes over, its record is
// kept until another turn commits or memory is needed.

namespace {

class SessionTurnsTest : public StoreTest {
 protected:
  void SetUp() override { ASSERT_TRUE(MakeStore().Create("a", {}).ok()); }

  // A lease at once, for a turn of this identity.
  SessionLease LeaseFor(const std::string& id, const TurnIdentity& identity) {
    auto lease =
        store_->AcquireFor(SessionName::OfDefaultTenant(id), identity, nullptr);
    EXPECT_TRUE(lease.ok()) << lease.status();
    if (!lease.ok() || !lease->has_value()) {
      ADD_FAILURE() << "no lease at once";
      return {};
    }
    return **std::move(lease);
  }

  // Asks for a session that is busy with the same turn.
  struct Waiting {
    std::vector<std::string> answers;
    std::optional<SessionLease> lease;
  };
  void WaitFor(const std::string& id, const TurnIdentity& identity,
               Waiting* waiting) {
    const auto now =
        store_->AcquireFor(SessionName::OfDefaultTenant(id), identity,
                           [waiting](absl::StatusOr<SessionLease> lease) {
                             waiting->answers.push_back(Refusal(lease));
                             if (lease.ok()) waiting->lease = *std::move(lease);
                           });
    ASSERT_TRUE(now.ok()) << now.status();
    EXPECT_FALSE(now->has_value());
    EXPECT_TRUE(waiting->answers.empty());
  }

  // A turn that leaves a record of so many tokens.
  static void Finish(SessionLease lease, const TurnIdentity& identity,
                     size_t tokens) {
    auto record = std::make_shared<TurnRecord>();
    record->identity = identity;
    record->tokens.resize(tokens);
    LastTurn last;
    last.request_id = identity.request_id;
    lease.SetLastTurn(std::move(last), std::move(record));
  }

  const TurnIdentity turn_{"r", "d"};
};

TEST_F(SessionTurnsTest, TheSameRequestTakesOverWhenTheRunningTurnHasEnded) {
  SessionLease running = LeaseFor("a", turn_);
  EXPECT_FALSE(running.superseded());
  int wakeups = 0;
  store_->SetWakeup([&] { ++wakeups; });
  Waiting waiting;
  WaitFor("a", turn_, &waiting);
  EXPECT_TRUE(running.superseded());
  EXPECT_EQ(wakeups, 1) << "the scheduler is to look";

  running.Append({1, 2});
  running.Release();
  EXPECT_EQ(waiting.answers, std::vector<std::string>{"OK"});
  ASSERT_TRUE(waiting.lease.has_value());
  EXPECT_EQ(waiting.lease->position(), 2);
  EXPECT_FALSE(waiting.lease->superseded());
  EXPECT_EQ(Refusal(store_->Acquire("a")), "ABORTED SESSION_BUSY");
  ExpectConserved();
  waiting.lease->Release();
  EXPECT_EQ(store_->counts().busy, 0);
  EXPECT_EQ(Refusal(store_->Acquire("a")), "OK");
  ExpectConserved();
}

TEST_F(SessionTurnsTest, OfTwoWhoWaitTheNewerOneTakesOver) {
  SessionLease running = LeaseFor("a", turn_);
  Waiting first, second;
  WaitFor("a", turn_, &first);
  WaitFor("a", turn_, &second);
  EXPECT_EQ(first.answers, std::vector<std::string>{"ABORTED SUPERSEDED"});
  running.Release();
  EXPECT_EQ(first.answers.size(), 1u);
  EXPECT_EQ(second.answers, std::vector<std::string>{"OK"});
}

TEST_F(SessionTurnsTest, WhoTookOverIsTakenOverInTurn) {
  SessionLease running = LeaseFor("a", turn_);
  Waiting first, second;
  WaitFor("a", turn_, &first);
  running.Release();
  ASSERT_TRUE(first.lease.has_value());
  WaitFor("a", turn_, &second);
  EXPECT_TRUE(first.lease->superseded());
  first.lease.reset();
  EXPECT_EQ(second.answers, std::vector<std::string>{"OK"});
}

TEST_F(SessionTurnsTest, OthersFindTheSessionBusy) {
  SessionLease running = LeaseFor("a", turn_);
  for (const TurnIdentity& other :
       {TurnIdentity{"s", "d"}, TurnIdentity{"", ""}, TurnIdentity{"", "d"}}) {
    EXPECT_EQ(Refusal(store_->AcquireFor("a", other, nullptr)),
              "ABORTED SESSION_BUSY");
  }
  EXPECT_EQ(Refusal(store_->AcquireFor("a", {"r", "other"}, nullptr)),
            "INVALID_ARGUMENT FIELD_INVALID request_id");
  EXPECT_FALSE(running.superseded());
}

TEST_F(SessionTurnsTest, ATurnWithoutAnIdIsNeverTakenOver) {
  SessionLease running = Lease("a");
  EXPECT_EQ(Refusal(store_->AcquireFor("a", turn_, nullptr)),
            "ABORTED SESSION_BUSY");
  EXPECT_FALSE(running.superseded());
}

TEST_F(SessionTurnsTest, WhoWaitsForADeletedSessionHearsSo) {
  SessionLease running = LeaseFor("a", turn_);
  Waiting waiting;
  WaitFor("a", turn_, &waiting);
  ASSERT_TRUE(store_->Delete("a").ok());
  EXPECT_TRUE(waiting.answers.empty()) << "the turn has not ended";
  running.Release();
  EXPECT_EQ(waiting.answers,
            std::vector<std::string>{"ABORTED SESSION_DELETED"});
  ExpectConserved();
  EXPECT_EQ(store_->counts().busy, 0);
}

// The wake-up runs after the decision and before the one who waited is told.
TEST_F(SessionTurnsTest, ADeleteWhileTheSessionIsHandedOnLeaksNothing) {
  SessionLease running = LeaseFor("a", turn_);
  Waiting waiting;
  WaitFor("a", turn_, &waiting);
  int deletes = 0;
  store_->SetWakeup([&] {
    if (store_->Delete("a").ok()) ++deletes;
  });
  running.Release();
  ASSERT_EQ(deletes, 1);
  EXPECT_EQ(waiting.answers, std::vector<std::string>{"OK"});
  ASSERT_TRUE(waiting.lease.has_value()) << "somebody must end the session";
  EXPECT_TRUE(waiting.lease->delete_requested());
  waiting.lease.reset();
  EXPECT_EQ(store_->counts().busy, 0);
  EXPECT_EQ(store_->counts().ended, 1);
  EXPECT_EQ(store_->TakeEndedKeys().size(), 1u);
  ExpectConserved();
}

TEST_F(SessionTurnsTest, TheRecordStaysUntilAnotherTurnCommits) {
  Finish(LeaseFor("a", turn_), turn_, 5);
  {
    SessionLease looking = LeaseFor("a", turn_);  // changes nothing
    const auto record = looking.RecordFor(turn_);
    ASSERT_TRUE(record.ok()) << record.status();
    ASSERT_NE(*record, nullptr);
    EXPECT_EQ((*record)->tokens.size(), 5u);
    EXPECT_EQ(*looking.RecordFor({"s", "d"}), nullptr);
    EXPECT_EQ(store_->counts().turn_record_bytes, (*record)->Bytes());
  }
  Lease("a").SetLastTurn(LastTurn());
  EXPECT_EQ(Refusal(LeaseFor("a", turn_).RecordFor(turn_)),
            "ABORTED REPLAY_EVICTED");
  EXPECT_EQ(store_->counts().turn_record_bytes, 0);
}

// a, b, a: the third is a retry that was on its way for long.
TEST_F(SessionTurnsTest, ALateRetryIsRefusedAsLongAsItsIdIsRemembered) {
  SessionStoreOptions options;
  options.remembered_requests = 2;
  ASSERT_TRUE(MakeStore(options).Create("a", {}).ok());
  const auto refusal = [&](const char* id) {
    return Refusal(LeaseFor("a", {id, "d"}).RecordFor({id, "d"}));
  };
  for (const char* id : {"1", "2", "3"}) {
    SessionLease lease = LeaseFor("a", {id, "d"});
    lease.Append({7});
    Finish(std::move(lease), {id, "d"}, 1);
  }
  EXPECT_EQ(refusal("3"), "OK");
  EXPECT_EQ(refusal("2"), "ABORTED REPLAY_EVICTED");
  EXPECT_EQ(refusal("1"), "ABORTED REPLAY_EVICTED");
  // A turn without an id makes the last one an earlier one, and is none itself.
  Lease("a").SetLastTurn(LastTurn());
  EXPECT_EQ(refusal("3"), "ABORTED REPLAY_EVICTED");
  EXPECT_EQ(refusal("2"), "ABORTED REPLAY_EVICTED");
  EXPECT_EQ(refusal("1"), "OK") << "only two are remembered";
  // The same turn going on is not an earlier one of itself.
  Finish(LeaseFor("a", {"4", "d"}), {"4", "d"}, 1);
  Finish(LeaseFor("a", {"4", "d"}), {"4", "d"}, 2);
  EXPECT_EQ(refusal("4"), "OK");
  EXPECT_EQ(refusal("2"), "ABORTED REPLAY_EVICTED");
  // Another session knows nothing of them.
  ASSERT_TRUE(store_->Create("b", {}).ok());
  EXPECT_EQ(*LeaseFor("b", {"3", "d"}).RecordFor({"3", "d"}), nullptr);
}

TEST_F(SessionTurnsTest, TheOldestRecordsMakeRoom) {
  TurnRecord measure;
  measure.tokens.resize(100);
  SessionStoreOptions options;
  options.turn_record_bytes = 2 * measure.Bytes() + measure.Bytes() / 2;
  MakeStore(options);
  for (const char* id : {"a", "b", "c"}) {
    ASSERT_TRUE(store_->Create(SessionName::OfDefaultTenant(id), {}).ok());
    Finish(LeaseFor(id, turn_), turn_, 100);
  }
  EXPECT_EQ(store_->counts().turn_record_bytes, 2 * measure.Bytes());
  EXPECT_EQ(Refusal(LeaseFor("a", turn_).RecordFor(turn_)),
            "ABORTED REPLAY_EVICTED");
  EXPECT_EQ(Refusal(LeaseFor("b", turn_).RecordFor(turn_)), "OK");
  // A newer record of the same session is the newest of all.
  Finish(LeaseFor("b", {"s", "d"}), {"s", "d"}, 100);
  Finish(LeaseFor("a", {"s", "d"}), {"s", "d"}, 100);
  EXPECT_EQ(Refusal(LeaseFor("c", turn_).RecordFor(turn_)),
            "ABORTED REPLAY_EVICTED");
  EXPECT_EQ(Refusal(LeaseFor("b", {"s", "d"}).RecordFor({"s", "d"})), "OK");
}

TEST_F(SessionTurnsTest, ARecordBeyondAllMemoryIsNotKept) {
  SessionStoreOptions options;
  options.turn_record_bytes = 10;
  ASSERT_TRUE(MakeStore(options).Create("a", {}).ok());
  Finish(LeaseFor("a", turn_), turn_, 1);
  EXPECT_EQ(store_->counts().turn_record_bytes, 0);
}

TEST_F(SessionTurnsTest, AnEndedSessionLeavesNoRecord) {
  Finish(LeaseFor("a", turn_), turn_, 5);
  ASSERT_TRUE(store_->Delete("a").ok());
  EXPECT_EQ(store_->counts().turn_record_bytes, 0);
  ASSERT_TRUE(store_->Create("a", {}).ok());
  EXPECT_EQ(*LeaseFor("a", turn_).RecordFor(turn_), nullptr);
}

}  // namespace

}  // namespace txl
