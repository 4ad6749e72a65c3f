// What tenants keep stays counted once, whoever comes in between: reads of the
// journal that are late, and many threads.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/fakes/fake_journal.h"
#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

constexpr char kAlice[] = "alice";
constexpr int64_t kEmptySession = 2048;

// Reads at once what it answers later; can have sessions that nobody can load.
class LateJournal : public FakeJournal {
 public:
  using FakeJournal::FakeJournal;

  void Load(const std::string& id,
            std::function<void(absl::StatusOr<StoredSession>)> done) override {
    if (id == damaged) return done(absl::DataLossError("damaged"));
    FakeJournal::Load(id, [&](absl::StatusOr<StoredSession> stored) {
      const auto held =
          std::make_shared<absl::StatusOr<StoredSession>>(std::move(stored));
      Later([done, held] { done(std::move(*held)); });
    });
  }
  void ListExpired(
      absl::Time now, int64_t count,
      std::function<void(absl::StatusOr<std::vector<StoredPosition>>)> done)
      override {
    FakeJournal::ListExpired(now, count, [&](const auto& expired) {
      Later([done, expired] { done(expired); });
    });
  }
  void Later(std::function<void()> answer) {
    if (!late) return answer();
    answers_.push_back(std::move(answer));
  }
  void Answer() {
    for (const auto& answer : std::exchange(answers_, {})) answer();
  }

  bool late = false;
  std::string damaged;

 private:
  std::vector<std::function<void()>> answers_;
};

class SessionQuotaRacesTest : public StoreTest {
 protected:
  void Start(bool commits = true) {
    journal_ = std::make_unique<LateJournal>(commits);
    SessionStoreOptions options;
    options.limits_of = [this](const std::string&) { return limits_; };
    options.journal = journal_.get();
    MakeStore(options);
  }
  ~SessionQuotaRacesTest() override { store_.reset(); }

  void CreateStored(const char* id) {
    ASSERT_TRUE(store_->Create({kAlice, id}, absl::Minutes(1)).ok());
    journal_->Commit();
    clock_.Advance(absl::Seconds(10));
    store_->TidyStored();
    ASSERT_EQ(store_->counts().idle, 0);
    ASSERT_EQ(Sessions(), 1);
  }
  int64_t Sessions() { return store_->tenant_uses()[kAlice].sessions; }
  int64_t Bytes() { return store_->tenant_uses()[kAlice].bytes; }

  SessionLimits limits_;
  std::unique_ptr<LateJournal> journal_;
};

TEST_F(SessionQuotaRacesTest, WhatIsListedAsExpiredTwiceEndsOnce) {
  Start(/*commits=*/false);
  CreateStored("s");
  clock_.Advance(absl::Minutes(2));
  journal_->late = true;
  store_->TidyStored();
  store_->TidyStored();
  journal_->Answer();
  EXPECT_EQ(Sessions(), 0);
  EXPECT_EQ(Bytes(), 0);
}

TEST_F(SessionQuotaRacesTest, WhatExpiresOnItsWayIntoMemoryEndsOnce) {
  for (const bool load_first : {true, false}) {
    SCOPED_TRACE(load_first);
    Start(/*commits=*/false);
    CreateStored("s");
    clock_.Advance(absl::Minutes(2));
    journal_->late = true;
    const auto load = [&] {
      store_->Prepare({kAlice, "s"}, [](const absl::Status&) {});
    };
    if (load_first) load();
    store_->TidyStored();
    if (!load_first) load();
    journal_->Answer();
    store_->TidyStored();
    journal_->Answer();
    EXPECT_EQ(Sessions(), 0);
    EXPECT_EQ(Bytes(), 0);
    EXPECT_EQ(Refusal(store_->Get({kAlice, "s"})), "NOT_FOUND SESSION_EXPIRED");
  }
}

// Two calls ask for it; the first deletes it before the second one's answer.
TEST_F(SessionQuotaRacesTest, WhatIsDeletedDoesNotComeBack) {
  Start();
  CreateStored("s");
  journal_->late = true;
  int told = 0;
  store_->Prepare({kAlice, "s"}, [&](const absl::Status&) {
    ++told;
    EXPECT_TRUE(store_->Delete({kAlice, "s"}).ok());
  });
  store_->Prepare({kAlice, "s"}, [&](const absl::Status&) {
    ++told;
    EXPECT_EQ(Refusal(store_->Get({kAlice, "s"})), "NOT_FOUND SESSION_UNKNOWN");
  });
  journal_->Answer();
  EXPECT_EQ(told, 2);
  EXPECT_EQ(journal_->loads(), 1);
  EXPECT_EQ(Sessions(), 0);
  EXPECT_EQ(store_->counts().idle, 0);
}

TEST_F(SessionQuotaRacesTest, WhatIsInMemoryIsNotLoadedAgain) {
  Start();
  ASSERT_TRUE(store_->Create({kAlice, "s"}, {}).ok());
  bool told = false;
  store_->Prepare({kAlice, "s"},
                  [&](const absl::Status& status) { told = status.ok(); });
  EXPECT_TRUE(told);
  EXPECT_EQ(journal_->loads(), 0);
}

TEST_F(SessionQuotaRacesTest, ASessionThatNobodyCanLoadIsGivenBackOnce) {
  Start(/*commits=*/false);
  CreateStored("s");
  journal_->damaged = "alice/s";
  EXPECT_EQ(Sessions(), 1);
  int discarded = 0;
  for (int i = 0; i < 2; ++i) {
    store_->DiscardStored({kAlice, "s"}, [&] { ++discarded; });
  }
  EXPECT_EQ(discarded, 2);
  EXPECT_EQ(Sessions(), 0);
  EXPECT_EQ(Bytes(), 0);
  EXPECT_TRUE(journal_->sessions().empty());
}

TEST_F(SessionQuotaRacesTest, WhatIsInUseIsNotDiscarded) {
  Start();
  ASSERT_TRUE(store_->Create({kAlice, "s"}, {}).ok());
  store_->DiscardStored({kAlice, "s"}, [] {});
  EXPECT_EQ(Sessions(), 1);
  EXPECT_TRUE(store_->Get({kAlice, "s"}).ok());
}

// 64 threads make and delete: never one above the limit, and the limit is
// reached.
TEST_F(SessionQuotaRacesTest, ManyThreadsNeverPassTheLimitAndReachIt) {
  constexpr int64_t kLimit = 10;
  constexpr int kThreads = 64;
  Start();
  limits_.sessions = kLimit;
  limits_.bytes = kLimit * kEmptySession;
  std::atomic<int64_t> held = 0;  // counted before it is given back
  std::atomic<int64_t> most = 0;
  std::atomic<int64_t> refused = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const SessionName name(kAlice, absl::StrCat("s", t, "-", i));
        const absl::Status made = store_->Create(name, {}).status();
        if (!made.ok()) {
          EXPECT_EQ(GetErrorDetails(made).reason, "QUOTA");
          ++refused;
          continue;
        }
        const int64_t now = ++held;
        int64_t seen = most;
        while (seen < now && !most.compare_exchange_weak(seen, now)) {
        }
        EXPECT_LE(Sessions(), kLimit);
        std::this_thread::yield();
        --held;
        EXPECT_TRUE(store_->Delete(name).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, kLimit);
  EXPECT_EQ(Sessions(), 0);
  EXPECT_EQ(Bytes(), 0);
  EXPECT_EQ(store_->tenant_uses()[kAlice].refused, refused);
  // All of them at once, and each keeps what it got: exactly the limit.
  std::atomic<int64_t> made = 0;
  threads.clear();
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      made += store_->Create({kAlice, absl::StrCat("k", t)}, {}).ok() ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, kLimit);
  EXPECT_EQ(Sessions(), kLimit);
  EXPECT_EQ(Bytes(), kLimit * kEmptySession);
}

// Turns that may grow together, too: what all have reserved never is more.
TEST_F(SessionQuotaRacesTest, ManyTurnsNeverReserveMoreThanTheLimit) {
  constexpr int kThreads = 64;
  Start();
  const int64_t grown = TokenSequence::BytesFor(1000);
  limits_.bytes = kThreads * kEmptySession + 5 * grown;
  std::vector<std::thread> threads;
  std::atomic<int64_t> most = 0;
  for (int t = 0; t < kThreads; ++t) {
    ASSERT_TRUE(store_->Create({kAlice, absl::StrCat("s", t)}, {}).ok());
  }
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        absl::StatusOr<SessionLease> lease =
            store_->Acquire({kAlice, absl::StrCat("s", t)});
        ASSERT_TRUE(lease.ok());
        if (lease->Reserve(1000).ok()) std::this_thread::yield();
        const int64_t now = Bytes();
        EXPECT_LE(now, *limits_.bytes);
        int64_t seen = most;
        while (seen < now && !most.compare_exchange_weak(seen, now)) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Bytes(), kThreads * kEmptySession);
  std::vector<SessionLease> leases;
  int64_t reserved = 0;
  for (int t = 0; t < kThreads; ++t) {
    leases.push_back(*store_->Acquire({kAlice, absl::StrCat("s", t)}));
    reserved += leases.back().Reserve(1000).ok() ? 1 : 0;
  }
  EXPECT_EQ(reserved, 5);
  EXPECT_EQ(Bytes(), *limits_.bytes);
}

}  // namespace
}  // namespace txl
