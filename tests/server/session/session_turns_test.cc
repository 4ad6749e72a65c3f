// Turns with an identity: one runs, the same request takes over, its record is
// kept until another turn commits or memory is needed.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/session/store_fixture.h"

namespace txl {
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
