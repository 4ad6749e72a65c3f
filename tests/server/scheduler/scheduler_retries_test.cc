// A turn that broke off, run again: it goes on where it stopped, and gives what
// it would have given in one piece.

#include <utility>

#include "gtest/gtest.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

constexpr int kTokens = 12;
const TurnIdentity kTurn{"r", "digest"};

// Parameter: steps in flight.
class SchedulerRetries : public ::testing::TestWithParam<int> {
 protected:
  static WorldOptions Options() {
    WorldOptions options;
    options.runner.depth = GetParam();
    return options;
  }

  // The turn's record as a later call of it finds it.
  static std::shared_ptr<const TurnRecord> RecordOf(World& world) {
    auto lease = world.store->Acquire("a");
    EXPECT_TRUE(lease.ok()) << lease.status();
    if (!lease.ok()) return nullptr;
    auto record = lease->RecordFor(kTurn);
    EXPECT_TRUE(record.ok()) << record.status();
    return record.ok() ? *std::move(record) : nullptr;
  }

  static TestTurn Begin(World& world, const Ids& prompt) {
    return world.Generate("a", prompt, kTokens,
                          [](Turn& turn) { turn.identity = kTurn; });
  }
  static TestTurn Resume(World& world) {
    return world.Generate("a", {}, kTokens,
                          [record = RecordOf(world)](Turn& turn) {
                            turn.identity = kTurn;
                            turn.resumed = record;
                          });
  }
  // Runs until the turn has given `count` tokens, then cancels it.
  static void CutAfter(World& world, const TestTurn& turn, size_t count) {
    while (turn.sink->ids().size() < count) ASSERT_TRUE(world.Step());
    turn.cancel->Cancel(CancelToken::Why::kCancelled);
    world.Run();
    EXPECT_EQ(Outcome(turn.sink->failed()), "CANCELLED CANCELLED");
  }
};

TEST_P(SchedulerRetries, CutAnywhereItGivesWhatItGivesWhole) {
  const Ids before = World::SomeIds(9, 1);
  const Ids prompt = World::SomeIds(5, 2);
  Ids all = before;
  all.insert(all.end(), prompt.begin(), prompt.end());
  for (size_t cut = 1; cut < kTokens; ++cut) {
    World world(Options());
    world.CreateSession("a");
    world.Submit("a", TurnKind::kAppend, before);
    world.Run();
    const TestTurn broken = Begin(world, prompt);
    CutAfter(world, broken, cut);
    const size_t had = broken.sink->ids().size();
    ASSERT_LT(had, static_cast<size_t>(kTokens));

    const TestTurn whole = Resume(world);
    world.Run();
    ASSERT_TRUE(whole.sink->finished().has_value()) << whole.sink->failed();
    EXPECT_EQ(whole.sink->ids(), world.runner->Continue(all, kTokens)) << cut;
    const TurnStarted started = *whole.sink->started();
    EXPECT_EQ(started.position, 9);
    EXPECT_EQ(started.prompt_tokens, 5);
    EXPECT_EQ(started.replayed_tokens, static_cast<int64_t>(had));
    const TurnFinished finished = *whole.sink->finished();
    EXPECT_EQ(finished.position, 9 + 5 + kTokens);
    EXPECT_EQ(finished.prompt_tokens, 5);
    EXPECT_EQ(finished.generated_tokens, kTokens);
    // Nothing was sampled twice.
    EXPECT_EQ(world.metrics.Get().tokens_delivered, kTokens);
    world.ExpectHealthy("a");
  }
}

TEST_P(SchedulerRetries, ARetryMayBreakOffToo) {
  World world(Options());
  world.CreateSession("a");
  const Ids prompt = World::SomeIds(4);
  CutAfter(world, Begin(world, prompt), 2);
  const size_t first = RecordOf(world)->tokens.size();
  const TestTurn second = Resume(world);
  CutAfter(world, second, first + 3);
  EXPECT_GT(RecordOf(world)->tokens.size(), first);
  const TestTurn third = Resume(world);
  world.Run();
  EXPECT_EQ(third.sink->ids(), world.runner->Continue(prompt, kTokens));
  EXPECT_EQ(RecordOf(world)->tokens.size(), static_cast<size_t>(kTokens));
}

TEST_P(SchedulerRetries, ThatGiveNoTokenLeaveTheRecordAsItWas) {
  World world(Options());
  world.CreateSession("a");
  CutAfter(world, Begin(world, World::SomeIds(4)), 2);
  const auto record = RecordOf(world);
  const TestTurn retry = Resume(world);
  retry.cancel->Cancel(CancelToken::Why::kCancelled);
  world.Run();
  EXPECT_EQ(RecordOf(world), record);
  world.ExpectHealthy("a");
}

TEST_P(SchedulerRetries, AFinishedTurnLeavesItsEnd) {
  World world(Options());
  world.CreateSession("a");
  const TestTurn turn = Begin(world, World::SomeIds(4));
  world.Run();
  const auto record = RecordOf(world);
  ASSERT_NE(record, nullptr);
  ASSERT_TRUE(record->finished.has_value());
  EXPECT_EQ(record->finished->position, 4 + kTokens);
  EXPECT_EQ(record->finished->timing.decode_seconds,
            turn.sink->finished()->timing.decode_seconds);
  ASSERT_EQ(record->tokens.size(), static_cast<size_t>(kTokens));
  for (int i = 0; i < kTokens; ++i) {
    EXPECT_EQ(record->tokens[i].token_id, turn.sink->tokens()[i].token_id);
    EXPECT_EQ(record->tokens[i].logprob, turn.sink->tokens()[i].logprob);
    EXPECT_EQ(record->tokens[i].index, i);
  }
}

TEST_P(SchedulerRetries, ATurnThatTheServersEndBrokeOffIsNotFinished) {
  World world(Options());
  world.CreateSession("a");
  const TestTurn turn = Begin(world, World::SomeIds(4));
  while (turn.sink->ids().size() < 3) ASSERT_TRUE(world.Step());
  world.scheduler->StartDrain();
  world.scheduler->EndAll();
  world.Run();
  ASSERT_TRUE(turn.sink->finished().has_value());
  EXPECT_EQ(turn.sink->finished()->reason, FinishReason::kServerDrain);
  const auto record = RecordOf(world);
  EXPECT_EQ(record->tokens.size(), turn.sink->ids().size());
  EXPECT_FALSE(record->finished.has_value());
}

TEST_P(SchedulerRetries, AnAppendLeavesItsScores) {
  World world(Options());
  world.CreateSession("a");
  const TestTurn turn =
      world.Submit("a", TurnKind::kAppend, World::SomeIds(6), [](Turn& turn) {
        turn.identity = kTurn;
        turn.return_scored = true;
      });
  world.Run();
  const auto record = RecordOf(world);
  ASSERT_NE(record, nullptr);
  EXPECT_TRUE(record->finished.has_value());
  ASSERT_EQ(record->scored.size(), 6u);
  EXPECT_EQ(record->scored[5].logprob, turn.sink->scored()[5].logprob);
}

TEST_P(SchedulerRetries, AfterATurnWithoutIdNoTurnIsGoneOnWith) {
  World world(Options());
  world.CreateSession("a");
  CutAfter(world, Begin(world, World::SomeIds(4)), 2);
  world.Generate("a", World::SomeIds(2), 3);
  world.Run();
  const auto lease = world.store->Acquire("a");
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_EQ(Outcome(lease->RecordFor(kTurn).status()),
            "ABORTED REPLAY_EVICTED");
}

TEST_P(SchedulerRetries, ASupersededTurnEndsAndHandsItsTokensOn) {
  World world(Options());
  world.CreateSession("a");
  const Ids prompt = World::SomeIds(4);
  auto first = world.store->AcquireFor("a", kTurn, nullptr);
  ASSERT_TRUE(first.ok() && first->has_value());
  const auto sink = std::make_shared<RecordingSink>();
  Turn turn;
  turn.lease = **std::move(first);
  turn.input = prompt;
  turn.stop.max_tokens = kTokens;
  turn.identity = kTurn;
  turn.sink = sink;
  turn.cancel = std::make_shared<CancelToken>();
  ASSERT_TRUE(world.scheduler->Submit(std::move(turn)).ok());
  while (sink->ids().size() < 3) ASSERT_TRUE(world.Step());

  std::shared_ptr<const TurnRecord> record;
  const auto later = [&](absl::StatusOr<SessionLease> lease) {
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_EQ(Outcome(sink->failed()), "OK") << "the session is free first";
    record = *lease->RecordFor(kTurn);
  };
  ASSERT_TRUE(world.store->AcquireFor("a", kTurn, later).ok());
  world.Run();
  EXPECT_EQ(Outcome(sink->failed()), "ABORTED SUPERSEDED");
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->tokens.size(), sink->ids().size());
  const TestTurn whole = Resume(world);
  world.Run();
  EXPECT_EQ(whole.sink->ids(), world.runner->Continue(prompt, kTokens));
  EXPECT_EQ(world.metrics.Get().turns_finished.at("ABORTED"), 1);
}

TEST_P(SchedulerRetries, AResumedStateThatIsLostIsRebuilt) {
  World world(Options());
  world.CreateSession("a");
  const Ids prompt = World::SomeIds(40);
  CutAfter(world, Begin(world, prompt), 3);
  // Other sessions push it out of its slot, and its image is lost.
  for (const char* other : {"b", "c", "d", "e"}) {
    world.CreateSession(other);
    world.Submit(other, TurnKind::kAppend, World::SomeIds(3));
    world.Run();
  }
  world.store->DropImage(world.store->Acquire("a")->key());
  const TestTurn whole = Resume(world);
  world.Run();
  EXPECT_GT(world.metrics.Get().rows_rebuild, 0);
  EXPECT_EQ(whole.sink->ids(), world.runner->Continue(prompt, kTokens));
}

INSTANTIATE_TEST_SUITE_P(Depth, SchedulerRetries, ::testing::Values(1, 2));

}  // namespace
}  // namespace txl
