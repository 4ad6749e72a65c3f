// Turns whose session is written down, with a storage as slow as a test says.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/scheduler/durable_sink.h"
#include "tests/fakes/fake_journal.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

using ::testing::IsEmpty;

constexpr int64_t kLag = 4;

class SchedulerStorageTest : public ::testing::Test {
 protected:
  SchedulerStorageTest() {
    WorldOptions options;
    options.store.journal = &journal_;
    world_ = std::make_unique<World>(options);
    world_->CreateSession("a");
    journal_.Commit();
  }

  // As rpc submits a turn: its intent is written down, its sink waits.
  TestTurn Submit(TurnKind kind, Ids input, int max_tokens, bool strict) {
    return world_->Submit("a", kind, std::move(input), [&](Turn& turn) {
      turn.stop.max_tokens = max_tokens;
      TurnIntent intent;
      intent.start_position = turn.lease.position();
      intent.prompt_tokens = static_cast<int64_t>(turn.input.size());
      turn.lease.Begin(intent);
      DurableSinkOptions options;
      options.journal = &journal_;
      options.tokens_wait = strict;
      options.most_lag = kLag;
      options.wake = [this] { world_->scheduler->Wake(); };
      turn.sink =
          std::make_shared<DurableSink>(options, turn.sink, turn.cancel);
    });
  }
  TestTurn Generate(int max_tokens, bool strict = false) {
    return Submit(TurnKind::kGenerate, World::SomeIds(3), max_tokens, strict);
  }

  void CommitNext() { journal_.CommitTo(journal_.durable_entry() + 1); }
  // The ids of the session that a process would find that starts now.
  Ids StoredIds() const {
    const auto after = journal_.Crash()->sessions();
    const FakeJournal::Session& session = after.at("a");
    Ids ids = session.ids;
    ids.insert(ids.end(), session.running_ids.begin(),
               session.running_ids.end());
    return ids;
  }
  void ExpectOneByOne(bool strict, int64_t most_lag);

  FakeJournal journal_{/*commits=*/false};
  std::unique_ptr<World> world_;
};

TEST_F(SchedulerStorageTest, ATurnIsParkedAtTheLagAndGoesOn) {
  const TestTurn turn = Generate(40);
  world_->Run();
  EXPECT_FALSE(turn.sink->started().has_value());
  EXPECT_EQ(world_->metrics.Get().turns_parked, 1);
  EXPECT_FALSE(world_->scheduler->Idle());
  int rounds = 0;
  while (!turn.sink->ended()) {
    const size_t before = turn.sink->tokens().size();
    journal_.Commit();
    world_->Run();
    ASSERT_TRUE(turn.sink->tokens().size() > before || turn.sink->ended());
    ++rounds;
  }
  // Two steps are in flight, so a little more than the lag a round.
  EXPECT_GE(rounds, 40 / (kLag + 2));
  EXPECT_EQ(turn.sink->ids(), world_->runner->Continue(World::SomeIds(3), 40));
  EXPECT_EQ(journal_.sessions().at("a").ids, world_->TokensOf("a"));
  world_->ExpectAtRest();
}

TEST_F(SchedulerStorageTest, AStorageThatKeepsUpParksNobody) {
  const TestTurn turn = Generate(40);
  while (world_->Step()) journal_.Commit();
  world_->Run();
  EXPECT_EQ(turn.sink->tokens().size(), 40u);
  EXPECT_TRUE(turn.sink->finished().has_value());
  EXPECT_EQ(world_->metrics.Get().distributions.stall_seconds.count(), 0);
  world_->ExpectAtRest();
}

// A process may be killed after every single entry that the storage took: what
// a client was told by then is there.
void SchedulerStorageTest::ExpectOneByOne(bool strict, int64_t most_lag) {
  const TestTurn turn = Generate(20, strict);
  const Ids prompt = World::SomeIds(3);
  int rounds = 0;
  while (!turn.sink->ended()) {
    ASSERT_LT(++rounds, 1000);
    world_->Run();
    const Ids stored = StoredIds();
    Ids told = turn.sink->started().has_value() ? prompt : Ids();
    const Ids tokens = turn.sink->ids();
    told.insert(told.end(), tokens.begin(), tokens.end());
    const auto kept =
        static_cast<int64_t>(std::min(stored.size(), told.size()));
    EXPECT_TRUE(
        std::equal(stored.begin(), stored.begin() + kept, told.begin()));
    if (!tokens.empty()) {
      const int64_t lost =
          std::ssize(tokens) -
          std::max<int64_t>(std::ssize(stored) - std::ssize(prompt), 0);
      EXPECT_LE(lost, most_lag);
    }
    CommitNext();
  }
  world_->Run();
  EXPECT_EQ(StoredIds(), world_->TokensOf("a"));
  EXPECT_EQ(StoredIds().size(), 23u);
  world_->ExpectAtRest();
}

TEST_F(SchedulerStorageTest, ACrashTakesBackNoMoreThanTheLag) {
  ExpectOneByOne(/*strict=*/false, kLag);
}

TEST_F(SchedulerStorageTest, ACrashTakesBackNothingWhereEveryTokenWaits) {
  ExpectOneByOne(/*strict=*/true, 0);
}

TEST_F(SchedulerStorageTest, WhatAnAppendFedIsStoredWithItsEndOrNotAtAll) {
  const TestTurn turn = Submit(TurnKind::kAppend, World::SomeIds(30), 0, false);
  world_->Run();
  EXPECT_FALSE(turn.sink->ended());
  while (!turn.sink->ended()) {
    EXPECT_THAT(StoredIds(), IsEmpty());
    CommitNext();
  }
  EXPECT_EQ(StoredIds(), World::SomeIds(30));
  world_->ExpectAtRest();
}

TEST_F(SchedulerStorageTest, AFullStoreEndsTheTurnAndLeavesATokenBorder) {
  const TestTurn turn = Generate(40);
  world_->Run();
  journal_.Commit();
  world_->Run();
  const Ids told = turn.sink->ids();
  ErrorDetails details;
  details.reason = "STORE_FULL";
  journal_.Fail(
      MakeError(absl::StatusCode::kResourceExhausted, "full", details));
  world_->Run();
  EXPECT_EQ(Outcome(turn.sink->failed()), "RESOURCE_EXHAUSTED STORE_FULL");
  EXPECT_EQ(turn.sink->violations(), std::vector<std::string>());
  EXPECT_TRUE(world_->scheduler->Idle());
  EXPECT_EQ(world_->store->counts().busy, 0);
  EXPECT_EQ(turn.sink->ids(), told);
  // The session has them, and what no reader saw.
  const Ids held = world_->TokensOf("a");
  ASSERT_GE(held.size(), 3 + told.size());
  EXPECT_TRUE(std::equal(told.begin(), told.end(), held.begin() + 3));
}

TEST_F(SchedulerStorageTest, ACancelledTurnEndsBehindWhatItSaid) {
  const TestTurn turn = Generate(40);
  world_->Run();
  turn.cancel->Cancel(CancelToken::Why::kCancelled);
  world_->Run();
  EXPECT_TRUE(world_->scheduler->Idle());
  EXPECT_FALSE(turn.sink->ended());  // its beginning is not stored yet
  while (!turn.sink->ended()) CommitNext();
  EXPECT_TRUE(absl::IsCancelled(turn.sink->failed()));
  EXPECT_EQ(turn.sink->violations(), std::vector<std::string>());
  journal_.Commit();
  EXPECT_EQ(StoredIds(), world_->TokensOf("a"));
}

}  // namespace
}  // namespace txl
