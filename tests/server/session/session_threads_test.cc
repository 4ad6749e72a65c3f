// Many threads on one set of sessions. Runs under the thread sanitizer too.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/session/session_store.h"
#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

using ::testing::AnyOf;

constexpr int kThreads = 6;
constexpr int kSessions = 5;
constexpr int kRounds = 1500;
constexpr int kRaces = 1000;

void RunThreads(int threads, const std::function<void(int)>& work) {
  std::vector<std::thread> running;
  running.reserve(static_cast<size_t>(threads));
  for (int t = 0; t < threads; ++t) running.emplace_back(work, t);
  for (std::thread& thread : running) thread.join();
}

class SessionThreadsTest : public StoreTest {
 protected:
  static std::string Id(uint32_t number) {
    return absl::StrCat("s", number % kSessions);
  }

  void ExpectConservedNow() {
    const SessionStore::Counts counts = store_->counts();
    EXPECT_EQ(counts.created, counts.ended + counts.idle + counts.busy);
    EXPECT_GE(counts.busy, 0);
    EXPECT_LE(counts.busy, kThreads);
    EXPECT_GE(counts.image_bytes, 0);
    EXPECT_LE(counts.image_bytes, 1000);
  }

  // One random call. Everything that may be refused may be.
  void Act(std::mt19937& random) {
    const std::string id = Id(random());
    switch (random() % 10) {
      case 0:
        (void)store_->Create(SessionName::OfDefaultTenant(id),
                             absl::Seconds(1 + random() % 3));
        break;
      case 1:
        (void)store_->Delete(SessionName::OfDefaultTenant(id));
        break;
      case 2:
        clock_.Advance(absl::Milliseconds(random() % 400));
        store_->ExpireNow();
        break;
      case 3:
        (void)store_->List(kDefaultTenant, 3, "");
        break;
      case 4: {
        const absl::StatusOr<SessionText> text =
            store_->GetTokens(SessionName::OfDefaultTenant(id), 0, 1'000'000);
        if (text.ok()) ExpectWhole(*text);
        break;
      }
      case 5:
        Turn(store_->AcquireTemporary(), random);
        break;
      default:
        Turn(store_->Acquire(SessionName::OfDefaultTenant(id)), random);
        break;
    }
  }

  // Turns append pairs (n, n) in one call; no reader may see half of one.
  static void ExpectWhole(const SessionText& text) {
    ASSERT_EQ(text.info.position, static_cast<int64_t>(text.token_ids.size()));
    ASSERT_EQ(text.token_ids.size() % 2, 0u);
    for (size_t i = 0; i < text.token_ids.size(); i += 2) {
      ASSERT_EQ(text.token_ids[i], text.token_ids[i + 1]);
    }
  }

  void Turn(absl::StatusOr<SessionLease> lease, std::mt19937& random) {
    if (!lease.ok()) return;
    const uint64_t key = lease->key();
    EXPECT_EQ(holders_[key % holders_.size()].fetch_add(1), 0);
    EXPECT_TRUE(store_->GetKeyState(key).busy);
    const int64_t before = lease->position();
    const int32_t value = static_cast<int32_t>(before);
    lease->Append({value, value});
    EXPECT_EQ(lease->position(), before + 2);
    if (random() % 2 == 0) {
      (void)store_->PutImage(key, ImageOfBytes(random() % 400));
    }
    (void)store_->GetImage(key);
    if (random() % 2 == 0) store_->DropImage(key);
    lease->SetLastTurn(LastTurn{});
    EXPECT_EQ(holders_[key % holders_.size()].fetch_sub(1), 1);
    if (random() % 2 == 0) lease->Release();
  }

  // By key; far more keys than one test makes.
  std::vector<std::atomic<int>> holders_ =
      std::vector<std::atomic<int>>(kThreads * kRounds + 1);
};

TEST_F(SessionThreadsTest, NothingIsLostWhateverHappensAtTheSameTime) {
  SessionStoreOptions options;
  options.max_sessions = kSessions + 2;
  options.image_bytes = 1000;
  options.remembered_ends = 3;
  SessionStore& store = MakeStore(options);
  std::atomic<int64_t> wakeups{0};
  store.SetWakeup([&] { ++wakeups; });
  std::atomic<int64_t> ended_keys{0};
  RunThreads(kThreads, [&](int thread) {
    std::mt19937 random(static_cast<uint32_t>(thread));
    for (int i = 0; i < kRounds; ++i) {
      Act(random);
      if (i % 16 == 0) {
        ended_keys += static_cast<int64_t>(store.TakeEndedKeys().size());
        ExpectConservedNow();
      }
    }
  });
  const SessionStore::Counts counts = store.counts();
  EXPECT_EQ(counts.busy, 0);
  EXPECT_EQ(counts.created, counts.ended + counts.idle);
  EXPECT_EQ(static_cast<int64_t>(
                store.List(kDefaultTenant, 1000, "")->sessions.size()),
            counts.idle);
  ended_keys += static_cast<int64_t>(store.TakeEndedKeys().size());
  EXPECT_EQ(ended_keys, counts.ended);
  EXPECT_GT(counts.created, kSessions);
  EXPECT_GT(wakeups, 0);

  clock_.Advance(absl::Hours(1));
  store.ExpireNow();
  EXPECT_EQ(store.counts().idle, 0);
  EXPECT_EQ(store.counts().created, store.counts().ended);
  EXPECT_EQ(store.counts().image_bytes, 0);
}

TEST_F(SessionThreadsTest, OfManyThatWantASessionExactlyOneGetsIt) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("a", {}).ok());
  std::atomic<int> holders{0};
  std::atomic<int64_t> turns{0};
  RunThreads(kThreads, [&](int) {
    for (int i = 0; i < kRounds; ++i) {
      absl::StatusOr<SessionLease> lease = store.Acquire("a");
      if (!lease.ok()) {
        EXPECT_EQ(Refusal(lease), "ABORTED SESSION_BUSY");
        continue;
      }
      EXPECT_EQ(++holders, 1);
      lease->Append({1});
      ++turns;
      EXPECT_EQ(--holders, 0);
    }
  });
  EXPECT_GT(turns, 0);
  EXPECT_EQ(store.Get("a")->position, turns);
}

TEST_F(SessionThreadsTest, OfManyThatCreateTheSameIdExactlyOneDoes) {
  SessionStore& store = MakeStore();
  constexpr int kIds = 200;
  std::array<std::atomic<int>, kIds> winners = {};
  RunThreads(kThreads, [&](int) {
    for (int i = 0; i < kIds; ++i) {
      const absl::StatusOr<SessionInfo> info =
          store.Create(SessionName::OfDefaultTenant(absl::StrCat("id", i)), {});
      if (info.ok()) {
        ++winners[static_cast<size_t>(i)];
      } else {
        EXPECT_EQ(Refusal(info), "ALREADY_EXISTS SESSION_EXISTS");
      }
    }
  });
  for (const std::atomic<int>& count : winners) EXPECT_EQ(count, 1);
  EXPECT_EQ(store.counts().created, kIds);
}

// A turn ends, the same request takes over, the session is deleted: in every
// order the session ends once and whoever waited is told once.
TEST_F(SessionThreadsTest, ATakeOverAgainstAReleaseAndADeleteLeaksNothing) {
  SessionStore& store = MakeStore();
  const TurnIdentity turn{"r", "d"};
  for (int i = 0; i < kRaces; ++i) {
    ASSERT_TRUE(store.Create("a", {}).ok());
    auto running = store.AcquireFor("a", turn, nullptr);
    ASSERT_TRUE(running.ok() && running->has_value());
    std::atomic<int> answers{0};
    const auto later = [&](absl::StatusOr<SessionLease> lease) {
      ++answers;
      EXPECT_THAT(Refusal(lease), AnyOf("OK", "ABORTED SESSION_DELETED"));
    };
    std::atomic<bool> waits{false};
    RunThreads(3, [&](int thread) {
      if (thread == 0) {
        (*running)->Release();
      } else if (thread == 1) {
        EXPECT_TRUE(store.Delete("a").ok());
      } else {
        const auto taken = store.AcquireFor("a", turn, later);
        waits = taken.ok() && !taken->has_value();
      }
    });
    ASSERT_EQ(answers, waits ? 1 : 0);
    ASSERT_EQ(store.counts().busy, 0);
    ASSERT_EQ(store.counts().ended, i + 1);
    ASSERT_EQ(store.TakeEndedKeys().size(), 1u);
  }
}

// T14: whoever loses is refused, and nobody sees half of a change.
TEST_F(SessionThreadsTest, ADeleteAgainstAnExpiryEndsTheSessionOnce) {
  SessionStore& store = MakeStore();
  for (int i = 0; i < kRaces; ++i) {
    ASSERT_TRUE(store.Create("a", absl::Seconds(1)).ok());
    clock_.Advance(absl::Seconds(1) - absl::Nanoseconds(1));
    RunThreads(3, [&](int thread) {
      if (thread == 0) {
        EXPECT_THAT(Refusal(store.Delete("a")),
                    AnyOf("OK", "NOT_FOUND SESSION_EXPIRED"));
      } else if (thread == 1) {
        clock_.Advance(absl::Nanoseconds(1));
        store.ExpireNow();
      } else {
        EXPECT_THAT(Refusal(store.Acquire("a")),
                    AnyOf("OK", "NOT_FOUND SESSION_EXPIRED",
                          "NOT_FOUND SESSION_UNKNOWN"));
      }
    });
    clock_.Advance(absl::Seconds(1));
    store.ExpireNow();
    ASSERT_EQ(store.counts().busy + store.counts().idle, 0);
    ASSERT_EQ(store.TakeEndedKeys().size(), 1u);
  }
}

TEST_F(SessionThreadsTest, ADeleteDuringTheTurnEndsTheSessionOnce) {
  SessionStore& store = MakeStore();
  std::set<uint64_t> ended;
  constexpr int kDeletes = kRaces;
  for (int i = 0; i < kDeletes; ++i) {
    ASSERT_TRUE(store.Create("a", {}).ok());
    SessionLease lease = Lease("a");
    RunThreads(2, [&](int thread) {
      if (thread == 0) {
        EXPECT_TRUE(store.Delete("a").ok());
      } else {
        (void)lease.delete_requested();
        lease.Release();
      }
    });
    EXPECT_EQ(Refusal(store.Get("a")), "NOT_FOUND SESSION_UNKNOWN");
    const std::vector<uint64_t> keys = store.TakeEndedKeys();
    ASSERT_EQ(keys.size(), 1u);
    ended.insert(keys.front());
  }
  EXPECT_EQ(ended.size(), static_cast<size_t>(kDeletes));
  EXPECT_EQ(store.counts().ended, kDeletes);
  EXPECT_EQ(store.counts().busy, 0);
}

}  // namespace
}  // namespace txl
