// Two session stores, of two servers, on one Redis.

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "server/api/session_access.h"
#include "server/base/error.h"
#include "server/base/task_thread.h"
#include "server/session/image_store.h"
#include "server/session/session_store.h"
#include "tests/fakes/fake_clock.h"
#include "tests/server/store/redis/redis_fixture.h"

namespace txl {
namespace {

std::string ReasonOf(const absl::Status& status) {
  return status.ok() ? "OK" : GetErrorDetails(status).reason;
}

class Server {
 public:
  explicit Server(const testing::RedisServer& redis,
                  ImageStore* images = nullptr)
      : journal_(OpenJournal(RedisOptions(redis))) {
    SessionStoreOptions options;
    options.images = images;
    options.journal = options.shared = journal_.get();
    store_ = std::make_unique<SessionStore>(options, &clock_);
    SessionStorage storage;
    storage.sink.journal = storage.shared = journal_.get();
    access_ = SessionAccess(store_.get(), nullptr, &calls_, storage);
  }
  // Calls of the journal end before the store does.
  ~Server() { journal_.reset(); }

  SessionStore& store() { return *store_; }
  const SessionAccess& access() const { return access_; }
  // Where calls run once their session is there.
  TaskThread& calls() { return calls_; }
  FakeClock& clock() { return clock_; }
  absl::Status Stored() { return Durable(*journal_); }
  // What a call sees that looks at the session.
  std::future<absl::Status> Look(const std::string& id) {
    const auto told = std::make_shared<std::promise<absl::Status>>();
    access_.With(
        SessionName::OfDefaultTenant(id),
        [this, id, told](const absl::Status& there) {
          told->set_value(
              there.ok()
                  ? store_->Get(SessionName::OfDefaultTenant(id)).status()
                  : there);
        });
    return told->get_future();
  }
  absl::Status Prepare(const std::string& id, bool acquires = false) {
    const auto told = std::make_shared<std::promise<absl::Status>>();
    access_.With(
        SessionName::OfDefaultTenant(id),
        [told](const absl::Status& it) { told->set_value(it); }, acquires);
    return told->get_future().get();
  }
  // Nothing is asked of Redis or entered there until `go_on`; returns when that
  // is so.
  void HoldJournal(const std::shared_ptr<absl::Notification>& go_on) {
    absl::Notification held;
    store_->ListStored("default", 1, "",
                       [&held, go_on](const absl::StatusOr<SessionPage>&) {
                         held.Notify();
                         go_on->WaitForNotification();
                       });
    held.WaitForNotification();
  }
  // A read that begins now, and those that run, are answered.
  void AwaitReads(const std::string& id) {
    absl::Notification told;
    store_->Prepare(SessionName::OfDefaultTenant(id),
                    [&told](const absl::Status&) { told.Notify(); });
    told.WaitForNotification();
  }
  // As a call does it that runs a turn.
  absl::StatusOr<SessionLease> Lease(const std::string& id,
                                     const std::string& request) {
    const absl::Status prepared = Prepare(id, true);
    if (!prepared.ok()) return prepared;
    const auto told =
        std::make_shared<std::promise<absl::StatusOr<SessionLease>>>();
    auto now = store_->AcquireFor(SessionName::OfDefaultTenant(id),
                                  {request, "digest " + request},
                                  [told](absl::StatusOr<SessionLease> it) {
                                    told->set_value(std::move(it));
                                  });
    if (!now.ok()) return now.status();
    if (now->has_value()) return **std::move(now);
    return told->get_future().get();
  }
  // A turn that takes on these ids, and ends.
  absl::Status Turn(const std::string& id, const std::string& request,
                    const std::vector<int32_t>& ids) {
    absl::StatusOr<SessionLease> lease = Lease(id, request);
    if (!lease.ok()) return lease.status();
    Begin(*lease, request, static_cast<int64_t>(ids.size()));
    lease->Append(ids);
    End(*lease, request);
    lease->Release();
    return Stored();
  }
  static void Begin(SessionLease& lease, const std::string& request,
                    int64_t prompt) {
    TurnIntent intent;
    intent.identity = {request, "digest " + request};
    intent.start_position = lease.position();
    intent.prompt_tokens = prompt;
    lease.Begin(intent);
  }
  static void End(SessionLease& lease, const std::string& request) {
    LastTurn last;
    last.request_id = request;
    last.outcome = "MAX_TOKENS";
    lease.SetLastTurn(last);
  }
  std::vector<int32_t> IdsOf(const std::string& id) {
    const absl::Status prepared = Prepare(id);
    EXPECT_TRUE(prepared.ok()) << prepared;
    const auto text =
        store_->GetTokens(SessionName::OfDefaultTenant(id), 0, 1000);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.ok() ? text->token_ids : std::vector<int32_t>{-1};
  }
  void ExpectConserved() {
    const SessionStore::Counts counts = store_->counts();
    EXPECT_EQ(counts.created + counts.loaded,
              counts.ended + counts.stored_away + counts.idle + counts.busy);
  }

 private:
  FakeClock clock_;
  std::unique_ptr<SharedJournal> journal_;
  std::unique_ptr<SessionStore> store_;
  SessionAccess access_;
  TaskThread calls_;
};

class SharedSessionsTest : public testing::WithRedis<> {
 protected:
  void SetUp() override {
    Flush(*redis_);
    here_ = std::make_unique<Server>(*redis_);
    there_ = std::make_unique<Server>(*redis_);
    ASSERT_TRUE(here_->store().Create("s", std::nullopt).ok());
    ASSERT_TRUE(here_->Stored().ok());
  }
  void TearDown() override {
    here_->ExpectConserved();
    there_->ExpectConserved();
  }

  std::unique_ptr<Server> here_;
  std::unique_ptr<Server> there_;
};

TEST_F(SharedSessionsTest, TurnsOfOneSessionRunWhereverTheyCome) {
  ASSERT_TRUE(here_->Turn("s", "1", {1, 2}).ok());
  ASSERT_TRUE(there_->Turn("s", "2", {3}).ok());
  ASSERT_TRUE(here_->Turn("s", "3", {4, 5}).ok());
  ASSERT_TRUE(here_->Turn("s", "4", {6}).ok());
  EXPECT_EQ(there_->IdsOf("s"), (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(here_->IdsOf("s"), there_->IdsOf("s"));
}

TEST_F(SharedSessionsTest, ACopyThatIsCurrentIsNotLoadedAgain) {
  ASSERT_TRUE(here_->Turn("s", "1", {1, 2}).ok());
  ASSERT_TRUE(here_->Turn("s", "2", {3}).ok());
  here_->IdsOf("s");
  EXPECT_EQ(here_->store().counts().loaded, 0);
  ASSERT_TRUE(there_->Turn("s", "3", {4}).ok());
  here_->IdsOf("s");
  here_->IdsOf("s");
  EXPECT_EQ(here_->store().counts().loaded, 1);
}

TEST_F(SharedSessionsTest, ARunningTurnKeepsOtherRequestsOut) {
  absl::StatusOr<SessionLease> lease = here_->Lease("s", "1");
  ASSERT_TRUE(lease.ok()) << lease.status();
  Server::Begin(*lease, "1", 1);
  ASSERT_TRUE(here_->Stored().ok());
  EXPECT_EQ(ReasonOf(there_->Lease("s", "2").status()), "SESSION_BUSY");
  Server::End(*lease, "1");
  ASSERT_TRUE(here_->Stored().ok());
  lease->Release();
  EXPECT_TRUE(there_->Lease("s", "2").ok());
}

TEST_F(SharedSessionsTest, ALeaseThatRanNothingIsFreeElsewhere) {
  ASSERT_TRUE(here_->Lease("s", "1").ok());  // and released
  // Sees what was asked before it.
  ASSERT_TRUE(here_->Prepare("s").ok());
  EXPECT_TRUE(there_->Lease("s", "2").ok());
}

TEST_F(SharedSessionsTest, TheSameRequestGoesOnElsewhereBehindWhatWasStored) {
  absl::StatusOr<SessionLease> lease = here_->Lease("s", "1");
  ASSERT_TRUE(lease.ok()) << lease.status();
  Server::Begin(*lease, "1", 2);
  TokenEvent event;
  event.token_id = 3;
  event.text = "three";
  lease->Append({1, 2, 3}, {event});
  ASSERT_TRUE(here_->Stored().ok());

  absl::StatusOr<SessionLease> other = there_->Lease("s", "1");
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->position(), 3);
  const auto record = other->RecordFor({"1", "digest 1"});
  ASSERT_TRUE(record.ok()) << record.status();
  ASSERT_NE(*record, nullptr);
  EXPECT_FALSE((*record)->finished.has_value());
  ASSERT_EQ((*record)->tokens.size(), 1u);
  EXPECT_EQ((*record)->tokens[0].text, "three");

  // The first server hears of it with what it stores next.
  EXPECT_FALSE(lease->moved().has_value());
  lease->Append({9});
  ASSERT_TRUE(here_->Stored().ok());
  ASSERT_TRUE(lease->moved().has_value());
  EXPECT_EQ(ReasonOf(*lease->moved()), "SESSION_MOVED");
  EXPECT_EQ(GetErrorDetails(*lease->moved()).metadata.at("position"), "3");
  lease->Release();

  other->Append({4});
  Server::End(*other, "1");
  other->Release();
  ASSERT_TRUE(there_->Stored().ok());
  EXPECT_EQ(here_->IdsOf("s"), (std::vector<int32_t>{1, 2, 3, 4}));
}

// One of them is refused with SESSION_EXISTS; it finds the other's child then.
TEST_F(SharedSessionsTest, AForkThatTwoServersMakeForOneRequestIsOne) {
  ASSERT_TRUE(here_->Turn("s", "1", {1, 2}).ok());
  there_->IdsOf("s");
  ForkRequest fork;
  fork.session = SessionName::OfDefaultTenant("s");
  fork.new_session_id = "t";
  fork.request_id = "f";
  for (Server* server : {here_.get(), there_.get()}) {
    ASSERT_TRUE(server->store().Fork(fork).ok());
  }
  for (Server* server : {here_.get(), there_.get()}) {
    ASSERT_TRUE(server->Stored().ok());
    ASSERT_TRUE(server->Prepare("t").ok());
    const auto child = server->store().Fork(fork);
    ASSERT_TRUE(child.ok()) << child.status();
    EXPECT_EQ(child->position, 2);
  }
  EXPECT_EQ(here_->IdsOf("t"), there_->IdsOf("t"));
}

TEST_F(SharedSessionsTest, WhoWaitedForAMovedSessionHearsIt) {
  absl::StatusOr<SessionLease> lease = here_->Lease("s", "1");
  ASSERT_TRUE(lease.ok());
  Server::Begin(*lease, "1", 1);
  ASSERT_TRUE(here_->Stored().ok());
  absl::Status waited;
  auto later = here_->store().AcquireFor(
      "s", {"1", "digest 1"},
      [&](absl::StatusOr<SessionLease> it) { waited = it.status(); });
  ASSERT_TRUE(later.ok() && !later->has_value());
  absl::StatusOr<SessionLease> other = there_->Lease("s", "1");
  ASSERT_TRUE(other.ok()) << other.status();
  lease->Append({1});
  ASSERT_TRUE(here_->Stored().ok());
  lease->Release();
  EXPECT_EQ(ReasonOf(waited), "SESSION_MOVED");
}

// The copy was current when the call looked. Before the call's turn comes,
// another server goes on, and an entry that is refused here says so.
TEST_F(SharedSessionsTest, ASessionThatLeavesBeforeItsCallRunsIsBroughtAgain) {
  ASSERT_TRUE(here_->Turn("s", "1", {1, 2}).ok());
  absl::Notification go_on;
  here_->calls().Run([&] { go_on.WaitForNotification(); });
  std::future<absl::Status> seen = here_->Look("s");
  here_->AwaitReads("s");
  ASSERT_TRUE(there_->Turn("s", "2", {3}).ok());
  RewindRequest rewind;
  rewind.session = "s";
  rewind.position = 1;
  ASSERT_TRUE(here_->store().Rewind(rewind).ok());
  ASSERT_TRUE(here_->Stored().ok());
  ASSERT_TRUE(absl::IsNotFound(here_->store().Get("s").status()));
  go_on.Notify();
  const absl::Status found = seen.get();
  EXPECT_TRUE(found.ok()) << found;
  EXPECT_EQ(here_->IdsOf("s"), (std::vector<int32_t>{1, 2, 3}));
}

// The turn's next entry would say it, or what the server asks each second.
TEST_F(SharedSessionsTest, WhatWasTakenOverIsReadWhereItIs) {
  absl::StatusOr<SessionLease> lease = here_->Lease("s", "1");
  ASSERT_TRUE(lease.ok()) << lease.status();
  Server::Begin(*lease, "1", 1);
  ASSERT_TRUE(here_->Stored().ok());
  ASSERT_TRUE(there_->Turn("s", "1", {1, 2}).ok());
  EXPECT_EQ(here_->IdsOf("s"), (std::vector<int32_t>{1, 2}));
  ASSERT_TRUE(lease->moved().has_value());
  EXPECT_EQ(ReasonOf(*lease->moved()), "SESSION_MOVED");
  lease->Release();
  ASSERT_TRUE(here_->Turn("s", "2", {3}).ok());
  EXPECT_EQ(there_->IdsOf("s"), (std::vector<int32_t>{1, 2, 3}));
}

TEST_F(SharedSessionsTest, ARunningTurnsSessionThatIsReadStaysItsOwn) {
  absl::StatusOr<SessionLease> lease = here_->Lease("s", "1");
  ASSERT_TRUE(lease.ok()) << lease.status();
  Server::Begin(*lease, "1", 1);
  lease->Append({1, 2});
  EXPECT_EQ(here_->IdsOf("s"), (std::vector<int32_t>{1, 2}));
  lease->Append({3});
  Server::End(*lease, "1");
  lease->Release();
  ASSERT_TRUE(here_->Stored().ok());
  EXPECT_EQ(there_->IdsOf("s"), (std::vector<int32_t>{1, 2, 3}));
}

TEST_F(SharedSessionsTest, WhatWasDeletedUnderATurnCanBeMadeAgain) {
  const absl::StatusOr<SessionLease> lease = here_->Lease("s", "1");
  ASSERT_TRUE(lease.ok()) << lease.status();
  ASSERT_TRUE(there_->Prepare("s").ok());
  ASSERT_TRUE(there_->store().Delete("s").ok());
  ASSERT_TRUE(there_->Stored().ok());
  ASSERT_TRUE(here_->Prepare("s").ok());
  const auto made = here_->store().Create("s", std::nullopt);
  EXPECT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(here_->Stored().ok());
  EXPECT_EQ(there_->IdsOf("s"), std::vector<int32_t>());
  EXPECT_EQ(ReasonOf(*lease->moved()), "SESSION_DELETED");
}

// Whether the read or the acquisition is first, who looks is not told of the
// old copy.
TEST_F(SharedSessionsTest, WhoLooksWhileATurnComesSeesWhatItFinds) {
  ASSERT_TRUE(here_->Turn("s", "1", {1}).ok());
  for (const bool read_first : {false, true}) {
    const std::string request = read_first ? "a" : "b";
    ASSERT_TRUE(there_->Turn("s", request, {2}).ok());
    const int64_t position = read_first ? 3 : 2;
    const auto go_on = std::make_shared<absl::Notification>();
    here_->HoldJournal(go_on);
    std::promise<int64_t> seen;
    std::promise<absl::StatusOr<SessionLease>> leased;
    const auto look = [&] {
      here_->access().With("s", [&](const absl::Status&) {
        const auto info = here_->store().Get("s");
        seen.set_value(info.ok() ? info->position : -1);
      });
    };
    if (read_first) look();
    ASSERT_TRUE(here_->store()
                    .AcquireFor("s", {},
                                [&](absl::StatusOr<SessionLease> it) {
                                  leased.set_value(std::move(it));
                                })
                    .ok());
    if (!read_first) look();
    go_on->Notify();
    EXPECT_EQ(seen.get_future().get(), position);
    EXPECT_TRUE(leased.get_future().get().ok());
    here_->AwaitReads("s");  // behind the lease's release
  }
}

// It ended here after another server had gone on with it.
TEST_F(SharedSessionsTest, WhatATurnSaidThatWasTakenOverIsNotToldAgain) {
  absl::StatusOr<SessionLease> lease = here_->Lease("s", "1");
  ASSERT_TRUE(lease.ok()) << lease.status();
  Server::Begin(*lease, "1", 1);
  ASSERT_TRUE(here_->Stored().ok());
  std::optional<SessionLease> again;
  const auto later = here_->store().AcquireFor(
      "s", {"1", "digest 1"},
      [&](absl::StatusOr<SessionLease> it) { again = *std::move(it); });
  ASSERT_TRUE(later.ok() && !later->has_value());
  const absl::StatusOr<SessionLease> other = there_->Lease("s", "1");
  ASSERT_TRUE(other.ok()) << other.status();
  const auto go_on = std::make_shared<absl::Notification>();
  here_->HoldJournal(go_on);
  lease->Append({1});
  Server::End(*lease, "1");
  lease->Release();
  go_on->Notify();
  ASSERT_TRUE(again.has_value());
  std::promise<absl::Status> told;
  const auto claim = again->claim();
  again->Release();
  here_->access().WhenStoredOf(
      claim, [&](const absl::Status& it) { told.set_value(it); });
  EXPECT_EQ(ReasonOf(told.get_future().get()), "SESSION_MOVED");
}

// Has no images, and says so when it is told to.
class SlowImages final : public ImageStore {
 public:
  using Done = std::function<void(std::optional<KeptImage>)>;

  void Put(const std::string&, TokenSlice,
           std::shared_ptr<const StateImage>) override {}
  void Get(const std::string&, Done done) override {
    absl::MutexLock lock(&mutex_);
    asked_.push_back(std::move(done));
  }
  void Remove(const std::string&) override {}
  int64_t Bytes() const override { return 0; }
  void Flush() override {}
  // The n-th that was asked for, which is awaited.
  void Answer(size_t n) {
    Done done;
    {
      absl::MutexLock lock(&mutex_);
      const auto asked = [&] { return asked_.size() > n; };
      mutex_.Await(absl::Condition(&asked));
      done = std::move(asked_[n]);
    }
    done(std::nullopt);
  }

 private:
  absl::Mutex mutex_;
  std::vector<Done> asked_;
};

// A copy moves away while its image is read, and a newer one comes.
TEST_F(SharedSessionsTest, TwoCallsNeverHaveOneCopy) {
  ASSERT_TRUE(here_->Turn("s", "x", {1, 2}).ok());
  SlowImages images;
  Server slow(*redis_, &images);
  std::future<absl::Status> seen = slow.Look("s");
  images.Answer(0);
  ASSERT_TRUE(seen.get().ok());
  ASSERT_TRUE(there_->Turn("s", "0", {3}).ok());

  RewindRequest rewind;
  rewind.session = "s";
  rewind.position = 1;
  const auto go_on = std::make_shared<absl::Notification>();
  slow.HoldJournal(go_on);
  ASSERT_TRUE(slow.store().Rewind(rewind).ok());
  std::promise<absl::Status> first;
  const auto acquired = slow.store().AcquireFor(
      "s", {"1", "digest 1"}, [&](const absl::StatusOr<SessionLease>& it) {
        first.set_value(it.status());
      });
  ASSERT_TRUE(acquired.ok() && !acquired->has_value());
  go_on->Notify();
  ASSERT_TRUE(slow.Stored().ok());
  ASSERT_TRUE(absl::IsNotFound(slow.store().Get("s").status()));

  auto again = std::async([&] { return slow.Lease("s", "1"); });
  images.Answer(2);
  absl::StatusOr<SessionLease> lease = again.get();
  ASSERT_TRUE(lease.ok()) << lease.status();
  images.Answer(1);
  EXPECT_EQ(ReasonOf(first.get_future().get()), "SESSION_BUSY");
  Server::Begin(*lease, "1", 1);
  lease->Append({4});
  Server::End(*lease, "1");
  lease->Release();
  ASSERT_TRUE(slow.Stored().ok());
  EXPECT_EQ(there_->IdsOf("s"), (std::vector<int32_t>{1, 2, 3, 4}));
  slow.ExpectConserved();
}

// Its own clock says so; that of the server which has the session does not.
TEST_F(SharedSessionsTest, ASessionThatHasExpiredHereIsLookedForOnce) {
  const absl::StatusOr<SessionLease> lease = there_->Lease("s", "1");
  ASSERT_TRUE(lease.ok());
  here_->clock().SetNow(here_->clock().Now() + absl::Hours(1000));
  EXPECT_EQ(ReasonOf(here_->Look("s").get()), "SESSION_EXPIRED");
}

TEST_F(SharedSessionsTest, WhatIsDeletedElsewhereIsGoneHere) {
  ASSERT_TRUE(here_->Turn("s", "1", {1}).ok());
  ASSERT_TRUE(there_->Prepare("s").ok());
  ASSERT_TRUE(there_->store().Delete("s").ok());
  ASSERT_TRUE(there_->Stored().ok());
  ASSERT_TRUE(here_->Prepare("s").ok());
  EXPECT_TRUE(absl::IsNotFound(here_->store().Get("s").status()));
  EXPECT_TRUE(absl::IsNotFound(here_->Lease("s", "2").status()));
}

TEST_F(SharedSessionsTest, ATurnOfADeletedSessionEnds) {
  absl::StatusOr<SessionLease> lease = here_->Lease("s", "1");
  ASSERT_TRUE(lease.ok());
  Server::Begin(*lease, "1", 1);
  ASSERT_TRUE(here_->Stored().ok());
  ASSERT_TRUE(there_->Prepare("s").ok());
  ASSERT_TRUE(there_->store().Delete("s").ok());
  ASSERT_TRUE(there_->Stored().ok());
  lease->Append({1});
  ASSERT_TRUE(here_->Stored().ok());
  ASSERT_TRUE(lease->moved().has_value());
  EXPECT_EQ(ReasonOf(*lease->moved()), "SESSION_DELETED");
}

TEST_F(SharedSessionsTest, ForksAndRewindsAreSeenEverywhere) {
  ASSERT_TRUE(here_->Turn("s", "1", {1, 2, 3}).ok());
  ASSERT_TRUE(there_->Prepare("s").ok());
  ForkRequest fork;
  fork.session = "s";
  fork.new_session_id = "f";
  fork.position = 2;
  ASSERT_TRUE(there_->store().Fork(fork).ok());
  RewindRequest rewind;
  rewind.session = "s";
  rewind.position = 1;
  ASSERT_TRUE(there_->store().Rewind(rewind).ok());
  ASSERT_TRUE(there_->Stored().ok());
  EXPECT_EQ(here_->IdsOf("f"), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(here_->IdsOf("s"), (std::vector<int32_t>{1}));
  ASSERT_TRUE(here_->Turn("s", "2", {7}).ok());
  EXPECT_EQ(there_->IdsOf("s"), (std::vector<int32_t>{1, 7}));
}

TEST_F(SharedSessionsTest, AListShowsWhatIsStored) {
  ASSERT_TRUE(here_->Turn("s", "1", {1, 2, 3}).ok());
  ASSERT_TRUE(there_->Turn("s", "2", {4}).ok());
  std::promise<absl::StatusOr<SessionPage>> told;
  here_->store().ListStored("default", 10, "",
                            [&](absl::StatusOr<SessionPage> page) {
                              told.set_value(std::move(page));
                            });
  const auto page = told.get_future().get();
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->sessions.size(), 1u);
  EXPECT_EQ(page->sessions[0].position, 4);
}

TEST_F(SharedSessionsTest, WithoutRedisNoTurnBeginsAndNothingIsForgotten) {
  ASSERT_TRUE(here_->Turn("s", "1", {1}).ok());
  redis_->Kill();
  EXPECT_EQ(ReasonOf(here_->Lease("s", "2").status()), "STORE_UNAVAILABLE");
  EXPECT_EQ(ReasonOf(there_->Prepare("s")), "STORE_UNAVAILABLE");
  redis_->Start();
  ASSERT_TRUE(here_->Turn("s", "2", {2}).ok());
  EXPECT_EQ(there_->IdsOf("s"), (std::vector<int32_t>{1, 2}));
}

}  // namespace
}  // namespace txl
