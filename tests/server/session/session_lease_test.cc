#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/session/session_store.h"
#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Text of an id: its number among those that the detokenizer has seen.
class CountingDetokenizer : public Detokenizer {
 public:
  CountingDetokenizer() : Detokenizer(10) {}
  std::string Flush() override { return ""; }
  std::unique_ptr<Detokenizer> Clone() const override {
    return std::make_unique<CountingDetokenizer>(*this);
  }
  std::string State() const override {
    return count_ == 0 ? "" : absl::StrCat(count_);
  }
  bool SetState(absl::string_view state) override {
    count_ = 0;
    return state.empty() || absl::SimpleAtoi(state, &count_);
  }

 private:
  std::string AddKnown(int32_t id) override {
    return absl::StrCat(++count_, ":", id);
  }

  int count_ = 0;
};

class CountingVocabulary : public Vocabulary {
 public:
  int64_t size() const override { return 10; }
  absl::string_view kind() const override { return "symbols"; }
  absl::StatusOr<std::vector<int32_t>> Encode(
      absl::string_view /*text*/,
      const EncodeOptions& /*options*/) const override {
    return std::vector<int32_t>{};
  }
  std::unique_ptr<Detokenizer> NewDetokenizer() const override {
    return std::make_unique<CountingDetokenizer>();
  }

 private:
  std::string BytesOf(int32_t id) const override { return absl::StrCat(id); }
};

class SessionLeaseTest : public StoreTest {
 protected:
  void SetUp() override {
    SessionStoreOptions options;
    options.vocabulary = &vocabulary_;
    MakeStore(options);
    ASSERT_TRUE(store_->Create("a", {}).ok());
  }

  CountingVocabulary vocabulary_;
};

TEST_F(SessionLeaseTest, OneTurnAtATime) {
  SessionLease lease = Lease("a");
  EXPECT_EQ(lease.name().id(), "a");
  EXPECT_EQ(store_->Get("a")->state, SessionState::kBusy);
  EXPECT_EQ(Refusal(store_->Acquire("a")), "ABORTED SESSION_BUSY");
  lease.Release();
  EXPECT_EQ(store_->Get("a")->state, SessionState::kIdle);
  EXPECT_TRUE(store_->Acquire("a").ok());
}

TEST_F(SessionLeaseTest, ItsDestructionMakesTheSessionIdle) {
  { const SessionLease lease = Lease("a"); }
  EXPECT_EQ(store_->Get("a")->state, SessionState::kIdle);
  EXPECT_EQ(store_->counts().idle, 1);
  EXPECT_EQ(store_->counts().busy, 0);
}

TEST_F(SessionLeaseTest, ReleasingTwiceIsReleasingOnce) {
  SessionLease first = Lease("a");
  first.Release();
  const SessionLease second = Lease("a");
  first.Release();
  EXPECT_EQ(store_->Get("a")->state, SessionState::kBusy);
  EXPECT_EQ(store_->counts().busy, 1);
}

TEST_F(SessionLeaseTest, MovesButDoesNotCopy) {
  static_assert(!std::is_copy_constructible_v<SessionLease>);
  static_assert(!std::is_copy_assignable_v<SessionLease>);
  SessionLease first = Lease("a");
  SessionLease second = std::move(first);
  first.Release();  // NOLINT(bugprone-use-after-move): does nothing
  EXPECT_EQ(second.name().id(), "a");
  EXPECT_EQ(store_->counts().busy, 1);
  second.Release();
  EXPECT_EQ(store_->counts().busy, 0);
}

TEST_F(SessionLeaseTest, AssignmentReleasesWhatItHeld) {
  ASSERT_TRUE(store_->Create("b", {}).ok());
  SessionLease lease = Lease("a");
  lease = Lease("b");
  EXPECT_EQ(lease.name().id(), "b");
  EXPECT_EQ(store_->Get("a")->state, SessionState::kIdle);
  EXPECT_EQ(store_->Get("b")->state, SessionState::kBusy);
  SessionLease& same = lease;
  lease = std::move(same);
  EXPECT_EQ(lease.name().id(), "b");
  EXPECT_EQ(store_->Get("b")->state, SessionState::kBusy);
}

TEST_F(SessionLeaseTest, AppendedIdsStayForTheNextTurn) {
  {
    SessionLease lease = Lease("a");
    EXPECT_EQ(lease.position(), 0);
    lease.Append({3, 1});
    lease.Append({});
    lease.Append({4});
    EXPECT_EQ(lease.position(), 3);
    EXPECT_EQ(store_->Get("a")->position, 3);  // seen at once
  }
  const SessionLease next = Lease("a");
  EXPECT_EQ(next.position(), 3);
  EXPECT_THAT(next.token_ids().Last(9), ElementsAre(3, 1, 4));
}

TEST_F(SessionLeaseTest, AppendMayTakeTheSessionsOwnIds) {
  SessionLease lease = Lease("a");
  lease.Append({1, 2});
  lease.Append(lease.token_ids().Last(2));
  EXPECT_THAT(lease.token_ids().Last(9), ElementsAre(1, 2, 1, 2));
}

TEST_F(SessionLeaseTest, ATurnWithoutAppendLeavesTheSessionAsItWas) {
  { Lease("a").Append({1, 2}); }
  { const SessionLease lease = Lease("a"); }
  EXPECT_THAT(TokensOf("a"), ElementsAre(1, 2));
}

TEST_F(SessionLeaseTest, ADetokenizerRunsAheadUntilItIsCommitted) {
  {
    const SessionLease lease = Lease("a");
    const std::unique_ptr<Detokenizer> ahead = lease.CloneDetokenizer();
    EXPECT_EQ(ahead->Add(7), "1:7");
  }
  {
    SessionLease lease = Lease("a");
    std::unique_ptr<Detokenizer> ahead = lease.CloneDetokenizer();
    EXPECT_EQ(ahead->Add(7), "1:7");  // the dropped one left no trace
    lease.SetDetokenizer(std::move(ahead));
  }
  EXPECT_EQ(Lease("a").CloneDetokenizer()->Add(8), "2:8");
}

TEST_F(SessionLeaseTest, EverySessionHasItsOwnDetokenizer) {
  ASSERT_TRUE(store_->Create("b", {}).ok());
  SessionLease a = Lease("a");
  std::unique_ptr<Detokenizer> ahead = a.CloneDetokenizer();
  ahead->Add(1);
  a.SetDetokenizer(std::move(ahead));
  EXPECT_EQ(Lease("b").CloneDetokenizer()->Add(2), "1:2");
  EXPECT_EQ(store_->AcquireTemporary()->CloneDetokenizer()->Add(3), "1:3");
}

TEST_F(SessionLeaseTest, WithoutAVocabularyThereIsNoDetokenizer) {
  SessionStore store(SessionStoreOptions{}, &clock_);
  ASSERT_TRUE(store.Create("a", {}).ok());
  const absl::StatusOr<SessionLease> lease = store.Acquire("a");
  ASSERT_TRUE(lease.ok());
  EXPECT_EQ(lease->CloneDetokenizer(), nullptr);
}

TEST_F(SessionLeaseTest, TheLastTurnIsShown) {
  SessionLease lease = Lease("a");
  LastTurn turn;
  turn.request_id = "r-1";
  turn.outcome = "MAX_TOKENS";
  turn.start_position = 4;
  turn.prompt_tokens = 3;
  turn.generated_tokens = 2;
  lease.SetLastTurn(turn);
  const LastTurn shown = store_->Get("a")->last_turn;
  EXPECT_EQ(shown.request_id, "r-1");
  EXPECT_EQ(shown.outcome, "MAX_TOKENS");
  EXPECT_EQ(shown.start_position, 4);
  EXPECT_EQ(shown.prompt_tokens, 3);
  EXPECT_EQ(shown.generated_tokens, 2);
}

TEST_F(SessionLeaseTest, ATemporarySessionHasNoIdAndEndsWithItsLease) {
  absl::StatusOr<SessionLease> lease = store_->AcquireTemporary();
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_EQ(lease->name().id(), "");
  lease->Append({1, 2});
  EXPECT_EQ(lease->position(), 2);
  const uint64_t key = lease->key();
  lease->Release();
  EXPECT_THAT(store_->TakeEndedKeys(), ElementsAre(key));
  ExpectConserved();
}

TEST_F(SessionLeaseTest, TemporarySessionsAreApart) {
  absl::StatusOr<SessionLease> first = store_->AcquireTemporary();
  absl::StatusOr<SessionLease> second = store_->AcquireTemporary();
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(second.ok());
  EXPECT_NE(first->key(), second->key());
  first->Append({1});
  EXPECT_THAT(second->token_ids().Last(9), IsEmpty());
}

}  // namespace
}  // namespace txl
