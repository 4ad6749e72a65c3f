// SessionStore: what tenants keep, counted over every way in which sessions
// come, change, leave memory and go.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/session/session_import.h"
#include "tests/fakes/fake_images.h"
#include "tests/fakes/fake_journal.h"
#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

constexpr int64_t kSlot = 50'000;

// docs/operating.md, once more.
int64_t Told(int64_t tokens) {
  return 2048 + TokenSequence::BytesFor(tokens) + (tokens >= 2 ? kSlot : 0);
}

std::string QuotaOf(const absl::Status& status) {
  if (status.ok()) return "OK";
  const ErrorDetails details = GetErrorDetails(status);
  const auto quota = details.metadata.find("quota");
  return quota == details.metadata.end() ? details.reason
                                         : "QUOTA " + quota->second;
}
template <typename T>
std::string QuotaOf(const absl::StatusOr<T>& result) {
  return QuotaOf(result.status());
}

class SessionQuotaCountsTest : public StoreTest {
 protected:
  SessionQuotaCountsTest() {
    options_.bytes_per_slot = kSlot;
    options_.limits_of = [this](const std::string& tenant) {
      return limits_[tenant];
    };
    Start(std::make_unique<FakeJournal>());
  }
  // Everything is checked after every test, too.
  ~SessionQuotaCountsTest() override {
    ExpectExact();
    earlier_.clear();
  }

  void Start(std::unique_ptr<FakeJournal> journal) {
    earlier_.emplace_back(std::move(journal_), std::move(store_));
    journal_ = std::move(journal);
    options_.journal = journal_.get();
    options_.images = &images_;
    MakeStore(options_);
    EXPECT_TRUE(store_->CountStored().ok());
  }
  void Restart() { Start(journal_->Crash()); }
  // Every session that may leave memory does.
  void LeaveMemory() {
    clock_.Advance(options_.store_away_after);
    store_->TidyStored();
  }

  void Prepare(const SessionName& name) {
    if (!store_->MayBeStored(name)) return;
    store_->Prepare(name, [](const absl::Status& status) {
      EXPECT_TRUE(status.ok()) << status;
    });
  }
  SessionLease LeaseOf(const SessionName& name) {
    Prepare(name);
    absl::StatusOr<SessionLease> lease = store_->Acquire(name);
    EXPECT_TRUE(lease.ok()) << lease.status();
    return lease.ok() ? *std::move(lease) : SessionLease();
  }
  void Feed(const SessionName& name, int64_t tokens) {
    SessionLease lease = LeaseOf(name);
    ASSERT_TRUE(lease.Reserve(tokens).ok());
    lease.Append(std::vector<int32_t>(static_cast<size_t>(tokens), 1));
    lease.SetLastTurn(LastTurn());
  }
  void Make(const SessionName& name, int64_t tokens = 0) {
    Prepare(name);
    ASSERT_EQ(QuotaOf(store_->Create(name, absl::Hours(1))), "OK");
    if (tokens > 0) Feed(name, tokens);
  }
  static ImportedSession Imported(int64_t tokens) {
    ImportedSession session;
    session.head.ttl = absl::Hours(1);
    session.token_ids.Append(
        std::vector<int32_t>(static_cast<size_t>(tokens), 1));
    return session;
  }

  SessionUse Use(const std::string& tenant) {
    const auto uses = store_->tenant_uses();
    const auto found = uses.find(tenant);
    return found == uses.end() ? SessionUse() : found->second;
  }
  // What happens, and what Alice's sessions are then, by their tokens.
  struct Change {
    const char* what;
    std::function<void()> make;
    std::vector<int64_t> sessions;
  };
  void Follow(const std::vector<Change>& changes) {
    for (const Change& change : changes) {
      SCOPED_TRACE(change.what);
      change.make();
      int64_t bytes = 0;
      for (const int64_t tokens : change.sessions) bytes += Told(tokens);
      EXPECT_EQ(Use("alice").sessions,
                static_cast<int64_t>(change.sessions.size()));
      EXPECT_EQ(Use("alice").bytes, bytes);
      ExpectExact();
    }
  }
  // While no turn runs: what is counted is what lists show, told as to users.
  void ExpectExact() {
    for (const std::string tenant : {"alice", "bob", kDefaultTenant}) {
      SessionUse listed;
      store_->ListStored(tenant, kMaxPageSize, "",
                         [&](const absl::StatusOr<SessionPage>& page) {
                           ASSERT_TRUE(page.ok());
                           for (const SessionInfo& info : page->sessions) {
                             ++listed.sessions;
                             listed.bytes += Told(info.position);
                           }
                         });
      EXPECT_EQ(Use(tenant).sessions, listed.sessions) << tenant;
      EXPECT_EQ(Use(tenant).bytes, listed.bytes) << tenant;
    }
  }

  FakeImages images_;
  std::map<std::string, SessionLimits> limits_;
  SessionStoreOptions options_;
  std::unique_ptr<FakeJournal> journal_;
  std::vector<
      std::pair<std::unique_ptr<FakeJournal>, std::unique_ptr<SessionStore>>>
      earlier_;
  const SessionName a_{"alice", "s"};
  const SessionName other_{"alice", "other"};
  const SessionName fork_{"alice", "fork"};
  const SessionName b_{"bob", "s"};
};

TEST_F(SessionQuotaCountsTest, EveryWayUpAndDownIsCounted) {
  Follow({
      {"create", [&] { Make(a_); }, {0}},
      {"one token has no segment memory", [&] { Feed(a_, 1); }, {1}},
      {"the second has", [&] { Feed(a_, 1); }, {2}},
      {"a turn", [&] { Feed(a_, 9998); }, {10'000}},
      {"a fork counts whole, whatever it shares",
       [&] {
         ASSERT_TRUE(
             store_->Fork({.session = a_, .new_session_id = "fork"}).ok());
       },
       {10'000, 10'000}},
      {"a rewind",
       [&] {
         ASSERT_TRUE(store_->Rewind({.session = fork_, .position = 300}).ok());
       },
       {10'000, 300}},
      {"a fork of its beginning",
       [&] {
         ASSERT_TRUE(
             store_
                 ->Fork(
                     {.session = fork_, .new_session_id = "c", .position = 1})
                 .ok());
       },
       {10'000, 300, 1}},
      {"an import",
       [&] {
         ASSERT_TRUE(
             store_->Import({"alice", "in"}, absl::Seconds(30), Imported(77))
                 .ok());
       },
       {10'000, 300, 1, 77}},
      {"what expires",
       [&] { clock_.Advance(absl::Seconds(31)); },
       {10'000, 300, 1}},
  });
}

TEST_F(SessionQuotaCountsTest, SessionsAwayFromMemoryAreCountedToo) {
  Follow({
      {"two sessions",
       [&] {
         Make(a_, 10'000);
         Make(other_, 300);
       },
       {10'000, 300}},
      {"what leaves memory stays", [&] { LeaveMemory(); }, {10'000, 300}},
      {"so does what comes back", [&] { Feed(a_, 1); }, {10'001, 300}},
      {"a restart", [&] { Restart(); }, {10'001, 300}},
      {"a delete of what is stored",
       [&] {
         Prepare(other_);
         ASSERT_TRUE(store_->Delete(other_).ok());
       },
       {10'001}},
      {"what expires away from memory",
       [&] {
         clock_.Advance(absl::Hours(1));
         store_->TidyStored();
       },
       {}},
  });
}

TEST_F(SessionQuotaCountsTest,
       SessionsOverTheLimitAreRefusedAndNothingChanges) {
  limits_["alice"].sessions = 2;
  Make(a_, 5);
  Make({"alice", "t"});
  const uint64_t entries = journal_->last_entry();
  EXPECT_EQ(QuotaOf(store_->Create({"alice", "u"}, {})), "QUOTA sessions");
  EXPECT_EQ(QuotaOf(store_->Fork({.session = a_})), "QUOTA sessions");
  EXPECT_EQ(QuotaOf(store_->Import({"alice", "u"}, {}, Imported(3))),
            "QUOTA sessions");
  EXPECT_EQ(journal_->last_entry(), entries);
  EXPECT_EQ(store_->counts().created, 2);
  EXPECT_EQ(Use("alice").refused, 3);
  // What is wrong otherwise is told first, and a fork of before is found again.
  EXPECT_EQ(QuotaOf(store_->Create(a_, {})), "SESSION_EXISTS");
  EXPECT_EQ(QuotaOf(store_->Fork({.session = a_, .position = 9})),
            "FIELD_INVALID");
  ASSERT_TRUE(store_->Delete({"alice", "t"}).ok());
  const ForkRequest fork{.session = a_, .request_id = "r"};
  EXPECT_EQ(QuotaOf(store_->Fork(fork)), "OK");
  EXPECT_EQ(QuotaOf(store_->Fork(fork)), "OK");
  EXPECT_EQ(QuotaOf(store_->Create({"alice", "u"}, {})), "QUOTA sessions");
}

TEST_F(SessionQuotaCountsTest, ATurnIsGivenWhatItMayGrowToAndGivesBackTheRest) {
  limits_["alice"].bytes = Told(100);
  Make(a_);
  {
    SessionLease lease = LeaseOf(a_);
    EXPECT_EQ(QuotaOf(lease.Reserve(1000)), "QUOTA bytes");
    EXPECT_EQ(Use("alice").bytes, Told(0));
    EXPECT_EQ(QuotaOf(lease.Reserve(100)), "OK");
    EXPECT_EQ(Use("alice").bytes, Told(100));
    EXPECT_EQ(QuotaOf(store_->Create({"alice", "t"}, {})), "QUOTA bytes");
    EXPECT_EQ(QuotaOf(lease.Reserve(100)), "OK");  // instead of the first
    lease.Append(std::vector<int32_t>(20, 1));
    EXPECT_EQ(Use("alice").bytes, Told(100));
  }
  EXPECT_EQ(Use("alice").bytes, Told(20));
  EXPECT_EQ(QuotaOf(store_->Fork({.session = a_})), "QUOTA bytes");
  EXPECT_EQ(QuotaOf(store_->Import({"alice", ""}, {}, Imported(90))),
            "QUOTA bytes");
  ASSERT_TRUE(store_->Rewind({.session = a_, .position = 1}).ok());
  EXPECT_EQ(QuotaOf(store_->Fork({.session = a_})), "OK");
}

TEST_F(SessionQuotaCountsTest, WhatIsNeverRefusedIsCountedAllTheSame) {
  limits_["alice"].bytes = Told(10);
  Make(a_);
  SessionLease lease = LeaseOf(a_);
  lease.Append(std::vector<int32_t>(500, 1));
  EXPECT_EQ(Use("alice").bytes, Told(500));
  EXPECT_EQ(QuotaOf(lease.Reserve(0)), "OK");
  EXPECT_EQ(QuotaOf(lease.Reserve(100)), "QUOTA bytes");
}

TEST_F(SessionQuotaCountsTest, TurnsWithoutASessionCountForNeither) {
  limits_[kDefaultTenant] = {.sessions = 1, .bytes = Told(0)};
  Make("mine");
  absl::StatusOr<SessionLease> lease = store_->AcquireTemporary();
  ASSERT_TRUE(lease.ok());
  EXPECT_TRUE(lease->Reserve(100'000).ok());
  EXPECT_EQ(Use(kDefaultTenant).sessions, 1);
  EXPECT_EQ(Use(kDefaultTenant).bytes, Told(0));
}

TEST_F(SessionQuotaCountsTest, ADeletedSessionCountsNoMoreThoughItsTurnEnds) {
  limits_["alice"].sessions = 1;
  Make(a_, 10);
  SessionLease running = LeaseOf(a_);
  ASSERT_TRUE(running.Reserve(1000).ok());
  ASSERT_TRUE(store_->Delete(a_).ok());
  EXPECT_EQ(Use("alice").sessions, 0);
  EXPECT_EQ(Use("alice").bytes, 0);
  Make(a_, 3);  // the same name
  running.Append({1, 2, 3});
  EXPECT_TRUE(running.Reserve(5000).ok());
  running.Release();
  EXPECT_EQ(Use("alice").bytes, Told(3));
}

TEST_F(SessionQuotaCountsTest, WhoTakesATurnOverReservesForItself) {
  Make(a_);
  const TurnIdentity turn{"r", "d"};
  auto first = store_->AcquireFor(a_, turn, nullptr);
  ASSERT_TRUE((*first)->Reserve(1000).ok());
  SessionLease next;
  ASSERT_TRUE(store_
                  ->AcquireFor(a_, turn,
                               [&](absl::StatusOr<SessionLease> lease) {
                                 next = *std::move(lease);
                               })
                  .ok());
  (*first)->Append({1, 2});
  (*first)->Release();
  EXPECT_EQ(Use("alice").bytes, Told(2));
  ASSERT_TRUE(next.Reserve(50).ok());
  EXPECT_EQ(Use("alice").bytes, Told(52));
}

TEST_F(SessionQuotaCountsTest, AnEmptySessionThatMakesRoomIsGivenBack) {
  options_.journal = nullptr;
  options_.max_sessions = 4;
  options_.temporary_reserve = 0;
  MakeStore(options_);
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(store_->Create({"alice", absl::StrCat("s", i)}, {}).ok());
    clock_.Advance(absl::Seconds(1));
  }
  EXPECT_EQ(Use("alice").sessions, 4);
}

TEST_F(SessionQuotaCountsTest, TenantsOfTheSameIdsHaveTheirOwnLimits) {
  limits_["alice"].sessions = 1;
  limits_["bob"].bytes = Told(0);
  Make(a_, 100);
  Make(b_);
  EXPECT_EQ(QuotaOf(store_->Create({"alice", "t"}, {})), "QUOTA sessions");
  EXPECT_EQ(QuotaOf(store_->Create({"bob", "t"}, {})), "QUOTA bytes");
  EXPECT_EQ(QuotaOf(LeaseOf(b_).Reserve(1)), "QUOTA bytes");
  ASSERT_TRUE(store_->Delete(a_).ok());
  EXPECT_EQ(Use("alice").sessions, 0);
  EXPECT_EQ(Use("bob").sessions, 1);
}

TEST_F(SessionQuotaCountsTest, ASmallerLimitKeepsWhatIsThere) {
  for (int i = 0; i < 4; ++i) Make({"alice", absl::StrCat("s", i)}, 10);
  limits_["alice"] = {.sessions = 2, .bytes = Told(10)};
  LeaveMemory();
  Restart();
  EXPECT_EQ(Use("alice").sessions, 4);
  {
    // A turn within the room that its session has already goes on.
    SessionLease lease = LeaseOf({"alice", "s1"});
    EXPECT_EQ(QuotaOf(lease.Reserve(6)), "OK");
    EXPECT_EQ(QuotaOf(lease.Reserve(7)), "QUOTA bytes");
  }
  for (const char* id : {"s0", "s1"}) {
    Prepare({"alice", id});
    EXPECT_EQ(QuotaOf(store_->Create({"alice", "t"}, {})), "QUOTA sessions");
    ASSERT_TRUE(store_->Delete({"alice", id}).ok());
  }
  EXPECT_EQ(QuotaOf(store_->Create({"alice", "t"}, {})), "QUOTA sessions");
}

TEST_F(SessionQuotaCountsTest, ATurnThatACrashBrokeOffCountsWithItsTokens) {
  Start(std::make_unique<FakeJournal>(/*commits=*/false));
  Make(a_, 10);
  SessionLease lease = LeaseOf(a_);
  TurnIntent intent;
  intent.start_position = 10;
  intent.prompt_tokens = 90;
  lease.Begin(intent);
  lease.Append(std::vector<int32_t>(90, 1));
  journal_->Commit();
  lease.Append(std::vector<int32_t>(500, 1));  // lost
  Restart();
  EXPECT_EQ(Use("alice").bytes, Told(100));
  EXPECT_EQ(LeaseOf(a_).position(), 100);
  EXPECT_EQ(Use("alice").bytes, Told(100));
}

TEST_F(SessionQuotaCountsTest, WithoutTheFileOfTenantsNothingIsCounted) {
  options_.limits_of = nullptr;
  Restart();
  Make(a_, 10);
  LeaveMemory();
  EXPECT_TRUE(store_->tenant_uses().empty());
  options_.limits_of = [this](const std::string& tenant) {
    return limits_[tenant];
  };
  Restart();
  EXPECT_EQ(Use("alice").bytes, Told(10));
}

}  // namespace
}  // namespace txl
