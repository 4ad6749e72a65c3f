#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "server/session/session_store.h"
#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

class SessionWakeupTest : public StoreTest {
 protected:
  void SetUp() override {
    MakeStore();
    ASSERT_TRUE(store_->Create("a", absl::Minutes(1)).ok());
    store_->SetWakeup([this] { ++calls_; });
  }

  int calls_ = 0;
};

TEST_F(SessionWakeupTest, ARelease) {
  SessionLease lease = Lease("a");
  EXPECT_EQ(calls_, 0);
  lease.Release();
  EXPECT_EQ(calls_, 1);
}

TEST_F(SessionWakeupTest, ADelete) {
  ASSERT_TRUE(store_->Delete("a").ok());
  EXPECT_EQ(calls_, 1);
}

TEST_F(SessionWakeupTest, ADeleteOfABusySessionSoThatItsTurnLooks) {
  SessionLease lease = Lease("a");
  ASSERT_TRUE(store_->Delete("a").ok());
  EXPECT_EQ(calls_, 1);
  lease.Release();
  EXPECT_EQ(calls_, 2);
}

TEST_F(SessionWakeupTest, AnExpiryWhoeverNoticesIt) {
  clock_.Advance(absl::Minutes(1));
  EXPECT_FALSE(store_->Get("a").ok());
  EXPECT_EQ(calls_, 1);
  store_->ExpireNow();
  EXPECT_EQ(calls_, 1);
}

TEST_F(SessionWakeupTest, TheEndOfATemporarySession) {
  { const absl::StatusOr<SessionLease> lease = store_->AcquireTemporary(); }
  EXPECT_EQ(calls_, 1);
}

TEST_F(SessionWakeupTest, NotWhenNothingEnds) {
  ASSERT_TRUE(store_->Create("b", {}).ok());
  ASSERT_TRUE(store_->Get("b").ok());
  ASSERT_TRUE(store_->List(kDefaultTenant, 0, "").ok());
  EXPECT_FALSE(store_->Delete("nobody").ok());
  store_->ExpireNow();
  const SessionLease lease = Lease("b");
  EXPECT_FALSE(store_->Acquire("b").ok());
  EXPECT_EQ(calls_, 0);
}

TEST_F(SessionWakeupTest, TheCallbackMayUseTheStore) {
  std::vector<uint64_t> ended;
  store_->SetWakeup([&] {
    store_->ExpireNow();
    ended = store_->TakeEndedKeys();
  });
  const uint64_t key = Lease("a").key();
  ASSERT_TRUE(store_->Delete("a").ok());
  EXPECT_EQ(ended, std::vector<uint64_t>{key});
}

TEST_F(SessionWakeupTest, TheStateHasChangedWhenTheCallbackRuns) {
  std::string seen;
  store_->SetWakeup([&] {
    seen = store_->Get("a")->state == SessionState::kIdle ? "idle" : "busy";
  });
  Lease("a").Release();
  EXPECT_EQ(seen, "idle");
}

TEST_F(SessionWakeupTest, ItCanBeTakenAway) {
  store_->SetWakeup(nullptr);
  Lease("a").Release();
  EXPECT_EQ(calls_, 0);
}

// Whoever takes the callback away may destroy what it refers to right after.
TEST_F(SessionWakeupTest, TakingItAwayWaitsForARunningCall) {
  absl::Notification entered;
  absl::Notification go_on;
  auto owner = std::make_unique<int>(0);
  store_->SetWakeup([&] {
    entered.Notify();
    go_on.WaitForNotification();
    ++*owner;
  });
  std::thread releaser([&] { Lease("a").Release(); });
  entered.WaitForNotification();
  int seen = -1;
  std::thread remover([&] {
    store_->SetWakeup(nullptr);
    seen = *owner;
    owner = nullptr;
  });
  go_on.Notify();
  remover.join();
  releaser.join();
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace txl
