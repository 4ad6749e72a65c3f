// What runs when: streams beside prompts, overlap, slow readers, bounds,
// draining, the measure of a hung device.

#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

// Slots with a row in a plan.
std::set<int> SlotsOf(const StepPlan& plan) {
  std::set<int> slots;
  for (const StepRow& row : plan.rows) slots.insert(row.slot);
  return slots;
}

TEST(SchedulerFlow, ARunningStreamGetsATokenAtEveryStepThatCarriesAPrompt) {
  WorldOptions options;
  options.scheduler.prompt_rows_per_step = 4;
  World world(options);
  world.Generate("", {1, 2}, 60);
  world.Step();
  const size_t before = world.runner->plans().size();
  world.Generate("", World::SomeIds(100), 2);
  world.Run();
  const std::vector<StepPlan> plans = world.runner->plans();
  int with_prompt = 0;
  for (size_t i = before; i < before + 25; ++i) {
    int prompt_rows = 0;
    for (const StepRow& row : plans[i].rows) prompt_rows += row.slot == 1;
    with_prompt += prompt_rows > 0;
    EXPECT_LE(prompt_rows, 4);
    EXPECT_EQ(SlotsOf(plans[i]).count(0), 1u) << "step " << i;
  }
  EXPECT_EQ(with_prompt, 25);
  EXPECT_EQ(world.metrics.Get().steps_with_prompt_and_decode, 25);
  world.ExpectAtRest();
}

TEST(SchedulerFlow, AShortPromptDoesNotWaitForALongOne) {
  WorldOptions options;
  options.scheduler.prompt_rows_per_step = 8;
  World world(options);
  const TestTurn longer = world.Generate("", World::SomeIds(400), 2);
  world.Step();
  const TestTurn shorter = world.Generate("", World::SomeIds(8), 2);
  for (int i = 0; i < 6; ++i) world.Step();
  EXPECT_EQ(shorter.sink->ids().size(), 2u);
  EXPECT_EQ(longer.sink->ids().size(), 0u);
  world.Run();
  world.ExpectAtRest();
}

TEST(SchedulerFlow, TwoStepsAreInFlightAndTheDeviceFeedsItsOwnToken) {
  World world;
  world.Generate("", {1, 2}, 5);
  world.Run();
  const std::vector<StepPlan> plans = world.runner->plans();
  ASSERT_EQ(plans.size(), 5u);  // the last token is known to be the last
  for (size_t i = 1; i < plans.size(); ++i) {
    EXPECT_EQ(plans[i].rows[0].token_id, kLastSampled);
  }
  const Snapshot s = world.metrics.Get();
  EXPECT_EQ(s.rows_discarded, 0);
  EXPECT_EQ(s.tokens_sampled, 5);
  world.ExpectAtRest();
}

TEST(SchedulerFlow, AStopThatComesOneStepLateDiscardsOneRowAndItsToken) {
  for (int depth : {1, 2}) {
    WorldOptions options;
    options.runner.depth = depth;
    World world(options);
    world.CreateSession("a");
    const Ids expected = world.runner->Continue({1, 2}, 4);
    const TestTurn turn = world.Generate("a", {1, 2}, 50, [&](Turn& turn) {
      turn.stop.stop_token_ids = {expected[3]};
    });
    world.Run();
    EXPECT_EQ(turn.sink->ids(), expected);
    ASSERT_TRUE(turn.sink->finished().has_value());
    EXPECT_EQ(turn.sink->finished()->reason, FinishReason::kStopToken);
    EXPECT_EQ(turn.sink->finished()->position, 6);
    const Snapshot s = world.metrics.Get();
    EXPECT_EQ(s.tokens_delivered, 4);
    EXPECT_EQ(s.tokens_discarded, depth - 1);
    EXPECT_EQ(s.rows_discarded, depth - 1);
    EXPECT_EQ(s.tokens_fed, 5);
    world.ExpectHealthy("a");
    world.ExpectAtRest();
  }
}

TEST(SchedulerFlow, RowsOfACancelledPromptAreDiscarded) {
  WorldOptions options;
  options.scheduler.prompt_rows_per_step = 5;
  World world(options);
  const TestTurn turn = world.Generate("", World::SomeIds(50), 5);
  for (int i = 0; i < 3; ++i) world.Step();
  turn.cancel->Cancel(CancelToken::Why::kCancelled);
  world.Run();
  const Snapshot s = world.metrics.Get();
  EXPECT_GT(s.rows_discarded, 0);
  EXPECT_EQ(s.rows_discarded, s.rows_run);
  EXPECT_EQ(s.rows_prefill, s.rows_run);
  world.ExpectAtRest();
}

TEST(SchedulerFlow, MinTokensBansStopAndEndTokensBeforeIt) {
  World world;
  const Ids prompt = World::SomeIds(6);
  const int32_t first = world.runner->NextToken(prompt);
  const TestTurn turn = world.Generate("", prompt, 3, [&](Turn& turn) {
    turn.stop.end_token_ids = {first};
    turn.sampling.min_tokens = 3;
  });
  world.Run();
  Ids ids = prompt;
  Ids expected;
  for (int i = 0; i < 3; ++i) {
    expected.push_back(world.runner->NextToken(ids, {first}));
    ids.push_back(expected.back());
  }
  EXPECT_EQ(turn.sink->ids(), expected);
  world.ExpectAtRest();
}

TEST(SchedulerFlow, AReaderThatStopsIsParkedAndTheOthersGoOn) {
  WorldOptions options;
  options.scheduler.park_events = 8;
  World world(options);
  const TestTurn slow = world.Generate("", {1}, 40);
  const TestTurn other = world.Generate("", {2}, 100);
  slow.sink->StopReading();
  for (int i = 0; i < 60; ++i) world.Step();
  EXPECT_EQ(slow.sink->most_unsent(), 8);
  EXPECT_EQ(world.metrics.Get().turns_parked, 1);
  EXPECT_GE(other.sink->ids().size(), 50u);
  slow.sink->Read(3);
  for (int i = 0; i < 10; ++i) world.Step();
  EXPECT_EQ(slow.sink->ids().size(), 10u);  // 7 beside Started, and 3
  slow.sink->GoOnReading();
  world.Run();
  EXPECT_EQ(slow.sink->ids(), world.runner->Continue({1}, 40));
  EXPECT_EQ(other.sink->ids(), world.runner->Continue({2}, 100));
  world.ExpectAtRest();
}

TEST(SchedulerFlow, AReaderThatStopsForTooLongIsClosed) {
  WorldOptions options;
  options.scheduler.park_events = 4;
  options.scheduler.slow_reader_limit = absl::Seconds(7);
  World world(options);
  world.CreateSession("a");
  const TestTurn slow = world.Generate("a", {1}, 40);
  slow.sink->StopReading();
  world.Run();
  EXPECT_EQ(world.scheduler->StallTime(), absl::ZeroDuration());
  world.fake_clock.Advance(absl::Seconds(6));
  world.Run();
  EXPECT_FALSE(slow.sink->ended());
  world.fake_clock.Advance(absl::Seconds(1));
  world.Run();
  EXPECT_EQ(Outcome(slow.sink->failed()), "RESOURCE_EXHAUSTED CLIENT_TOO_SLOW");
  EXPECT_EQ(world.TokensOf("a").size(), 1 + slow.sink->ids().size());
  world.ExpectHealthy("a");
  world.ExpectAtRest();
}

TEST(SchedulerFlow, TheSmallestSinkStillGetsItsTokens) {
  WorldOptions options;
  options.scheduler.park_events = 1;
  World world(options);
  const TestTurn turn = world.Generate("", {1}, 20);
  world.Run();
  EXPECT_EQ(turn.sink->ids(), world.runner->Continue({1}, 20));
  world.ExpectAtRest();
}

TEST(SchedulerFlow, AFullQueueRefusesAndReleasesTheSession) {
  WorldOptions options;
  options.runner.slots = 1;
  options.scheduler.max_queued_calls = 2;
  World world(options);
  world.CreateSession("a");
  world.Generate("", {1}, 10);
  world.Step();
  world.Generate("", {1}, 1);
  world.Generate("", {1}, 1);
  const TestTurn refused = world.Generate("a", {1}, 1);
  EXPECT_EQ(Outcome(refused.submitted), "RESOURCE_EXHAUSTED QUEUE_FULL");
  EXPECT_TRUE(GetErrorDetails(refused.submitted).retry.has_value());
  EXPECT_TRUE(world.store->Acquire("a").ok());
  world.Run();
  EXPECT_FALSE(refused.sink->ended());
  EXPECT_EQ(world.metrics.Get().turns_started, 3);
  world.ExpectAtRest();
}

TEST(SchedulerFlow, ALongestTurnEndsAndItsSessionStays) {
  WorldOptions options;
  options.scheduler.longest_turn = absl::Seconds(50);
  World world(options);
  world.CreateSession("a");
  const TestTurn turn = world.Generate("a", {1, 2}, 1000);
  for (int i = 0; i < 49; ++i) {
    world.Step();
    world.fake_clock.Advance(absl::Seconds(1));
  }
  world.Step();
  EXPECT_FALSE(turn.sink->ended());
  world.fake_clock.Advance(absl::Seconds(1));
  world.Run();
  EXPECT_EQ(Outcome(turn.sink->failed()),
            "DEADLINE_EXCEEDED DEADLINE_EXCEEDED");
  EXPECT_EQ(world.TokensOf("a").size(), 2 + turn.sink->ids().size());
  world.ExpectHealthy("a");
  world.ExpectAtRest();
}

TEST(SchedulerFlow, ATurnThatFindsNoSlotInTimeIsToldToComeAgain) {
  WorldOptions options = OneSlot();
  options.scheduler.queue_limit = absl::Seconds(20);
  World world(options);
  world.Generate("", {1}, 400);
  world.Step();
  const TestTurn waits = world.Generate("", {2}, 3);
  world.fake_clock.Advance(absl::Seconds(19));
  world.Step();
  EXPECT_FALSE(waits.sink->ended());
  world.fake_clock.Advance(absl::Seconds(1));
  world.Step();
  const absl::Status failed = waits.sink->failed();
  EXPECT_EQ(Outcome(failed), "RESOURCE_EXHAUSTED QUEUE_FULL");
  EXPECT_TRUE(GetErrorDetails(failed).retry.has_value());
  EXPECT_NE(failed.message().find("waited for 20s"), std::string::npos);
  world.Run();
  world.ExpectAtRest();
}

TEST(SchedulerFlow, ATurnThatCannotRunIsRefusedByField) {
  World world;
  world.CreateSession("a");
  const TestTurn empty = world.Generate("a", {}, 5);
  EXPECT_EQ(GetErrorDetails(empty.submitted).field, "prompt");
  const TestTurn nothing = world.Generate("a", {1}, 0);
  EXPECT_EQ(GetErrorDetails(nothing.submitted).field, "stop.max_tokens");
  world.ExpectHealthy("a");
  world.ExpectAtRest();
}

TEST(SchedulerDrain, NewTurnsAreRefusedAndRunningOnesGoOn) {
  World world;
  const TestTurn runs = world.Generate("", {1}, 10);
  world.Step();
  const TestTurn queued = world.Generate("", {2}, 10);
  world.scheduler->StartDrain();
  const TestTurn refused = world.Generate("", {1}, 10);
  EXPECT_EQ(Outcome(refused.submitted), "UNAVAILABLE DRAINING");
  EXPECT_FALSE(world.scheduler->Idle());
  world.Run();
  EXPECT_EQ(runs.sink->ids().size(), 10u);
  EXPECT_EQ(queued.sink->ids().size(), 10u);
  world.ExpectAtRest();
}

TEST(SchedulerDrain, EndAllEndsStreamsOkAtATokenAndTheRestUnavailable) {
  WorldOptions options;
  options.runner.slots = 4;
  options.scheduler.prompt_rows_per_step = 4;
  options.scheduler.park_events = 5;
  World world(options);
  world.CreateSession("a");
  const TestTurn stream = world.Generate("a", {1}, 100);
  const TestTurn parked = world.Generate("", {3}, 100);
  parked.sink->StopReading();
  for (int i = 0; i < 20; ++i) world.Step();
  const TestTurn prompting = world.Generate("", World::SomeIds(300), 100);
  const TestTurn append =
      world.Submit("", TurnKind::kAppend, World::SomeIds(300));
  const TestTurn queued = world.Generate("", {5}, 100);
  world.Step();
  world.scheduler->StartDrain();
  world.scheduler->EndAll();
  const size_t before = stream.sink->ids().size();
  for (int i = 0; i < 3; ++i) world.Step();
  for (const TestTurn& turn : {stream, parked}) {
    ASSERT_TRUE(turn.sink->finished().has_value());
    EXPECT_EQ(turn.sink->finished()->reason, FinishReason::kServerDrain);
  }
  EXPECT_EQ(stream.sink->ids().size(), before + 1);
  for (const TestTurn& turn : {prompting, append, queued}) {
    EXPECT_EQ(Outcome(turn.sink->failed()), "UNAVAILABLE DRAINING");
  }
  world.Run();
  EXPECT_EQ(world.TokensOf("a").size(), 1 + stream.sink->ids().size());
  EXPECT_EQ(world.store->Get("a")->last_turn.outcome, "SERVER_DRAIN");
  world.ExpectAtRest();
}

TEST(SchedulerDrain, TheDestructorEndsWhatStillRuns) {
  World world;
  const TestTurn runs = world.Generate("", {1}, 1000);
  const TestTurn prompts = world.Generate("", World::SomeIds(300), 5);
  for (int i = 0; i < 5; ++i) world.Step();
  const TestTurn queued = world.Generate("", {2}, 10);
  world.scheduler = nullptr;
  for (const TestTurn& turn : {runs, prompts, queued}) {
    EXPECT_EQ(Outcome(turn.sink->failed()), "UNAVAILABLE DRAINING");
    EXPECT_EQ(turn.sink->violations(), std::vector<std::string>());
  }
  EXPECT_EQ(world.store->counts().busy, 0);
  EXPECT_EQ(world.metrics.Get().turns_active, 0);
  EXPECT_EQ(world.runner->violations(), std::vector<std::string>());
}

TEST(SchedulerStall, TimeCountsWhileAStepIsAwaited) {
  World world;
  EXPECT_EQ(world.scheduler->StallTime(), absl::ZeroDuration());
  world.Generate("", {1}, 10);
  world.fake_clock.Advance(absl::Seconds(3));  // nobody looks at the queue
  EXPECT_EQ(world.scheduler->StallTime(), absl::Seconds(3));
  world.Step();  // one step in flight
  world.Step();  // its result
  EXPECT_EQ(world.scheduler->StallTime(), absl::ZeroDuration());
  world.fake_clock.Advance(absl::Seconds(2));
  EXPECT_EQ(world.scheduler->StallTime(), absl::Seconds(2));
  world.Run();
  world.ExpectAtRest();
}

TEST(SchedulerFlow, NoIdOutsideTheVocabularyGetsToTheDevice) {
  World world;
  world.CreateSession("s");
  const auto size = static_cast<int32_t>(world.runner->info().vocab_size);
  for (const int32_t id : {size, -1, size + 1000}) {
    const auto refused = [&](TurnKind kind, Ids input,
                             const std::function<void(Turn&)>& change) {
      EXPECT_EQ(Outcome(world.Submit("s", kind, input, change).submitted),
                "INVALID_ARGUMENT FIELD_INVALID");
    };
    refused(TurnKind::kGenerate, {1, id}, nullptr);
    refused(TurnKind::kAppend, {id}, nullptr);
    refused(TurnKind::kScore, {1, 2, id}, nullptr);
    refused(TurnKind::kAlternatives, {1}, [id](Turn& turn) {
      turn.alternatives = {{1}, {2, id}};
    });
    refused(TurnKind::kGenerate, {1}, [id](Turn& turn) {
      turn.received = 1;
      turn.adopted = {id};
    });
    refused(TurnKind::kGenerate, {1}, [id](Turn& turn) {
      turn.sampling.logit_bias = {{id, 1.0}};
    });
    refused(TurnKind::kGenerate, {1},
            [id](Turn& turn) { turn.stop.stop_token_ids = {id}; });
    refused(TurnKind::kGenerate, {1},
            [id](Turn& turn) { turn.sampling.allowed_token_ids = {id}; });
    refused(TurnKind::kScore, {1}, [id](Turn& turn) {
      turn.logprob_ids = std::make_shared<const Ids>(Ids{1, id});
    });
  }
  world.Run();
  EXPECT_EQ(world.metrics.Get().rows_run, 0);
  world.ExpectHealthy("s");
}

}  // namespace
}  // namespace txl
