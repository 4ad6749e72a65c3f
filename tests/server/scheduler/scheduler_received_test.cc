// A turn that is sent again with the tokens that its client has of it, to a
// session that holds as many, fewer or more of them: it goes on as if it had
// never been broken off.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/scheduler/received_turns.h"

namespace txl {
namespace {

TEST_P(SchedulerReceived, WhateverIsHeldAndReceivedTheTurnIsTheSame) {
  Case c;
  c.before = World::SomeIds(9, 1);
  c.prompt = World::SomeIds(5, 2);
  c.max_tokens = 6;
  for (const State state : {State::kInSlot, State::kInImage, State::kLost}) {
    for (c.kept = 0; c.kept <= c.max_tokens; ++c.kept) {
      for (c.received = 0; c.received <= c.max_tokens; ++c.received) {
        ExpectGoesOn(Options(), c, state);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(SchedulerReceived, AFreshSessionTakesPromptAndTokensOn) {
  Case c;
  c.prompt = World::SomeIds(1, 2);
  c.max_tokens = 5;
  for (c.received = 0; c.received <= c.max_tokens; ++c.received) {
    ExpectGoesOn(Options(), c, State::kInSlot);
  }
}

TEST_P(SchedulerReceived, MoreThanTheRingHasToSpareIsTakenOnToo) {
  Case c;
  c.before = World::SomeIds(40, 1);
  c.prompt = World::SomeIds(37, 2);
  c.max_tokens = 60;
  for (const int kept : {0, 1, 20}) {
    for (const int received : {18, 50, 59, 60}) {
      for (const State state :
           {State::kInSlot, State::kInImage, State::kLost}) {
        c.kept = kept;
        c.received = received;
        ExpectGoesOn(Options(), c, state);
      }
    }
  }
}

TEST_P(SchedulerReceived, StopRulesHoldForTokensThatWereTakenOn) {
  // What the turn gives without rules; a rule is made of its own tokens.
  Case plain = {
      .before = World::SomeIds(3, 1), .prompt = {'a', 'b'}, .max_tokens = 90};
  World world(WithText());
  const TestTurn turn = Whole(world, plain);
  const Ids ids = turn.sink->ids();
  // The first two characters in a row that stand for themselves.
  size_t pair = 2;
  const auto plain_character = [&](size_t i) {
    return ids.at(i) > ' ' && ids.at(i) < 127;
  };
  while (!plain_character(pair) || !plain_character(pair + 1)) ++pair;
  const std::string text = {static_cast<char>(ids[pair]),
                            static_cast<char>(ids[pair + 1])};
  std::vector<StopRules> rules(4);
  rules[0].stop_texts = {text};
  rules[1].stop_token_ids = {ids[pair + 1]};
  rules[2].end_token_ids = {ids[pair + 1]};
  const auto times = std::count(ids.begin(), ids.begin() + pair + 2, ids[pair]);
  rules[3].token_count = {ids[pair], static_cast<int32_t>(times)};
  for (const StopRules& stop : rules) {
    Case c = plain;
    c.stop = stop;
    World other(WithText());
    const int n = static_cast<int>(Whole(other, c).sink->ids().size());
    for (const int kept : {0, 1, n - 2, n - 1, n}) {
      for (const int received : {0, 2, n - 2, n - 1, n}) {
        c.kept = kept;
        c.received = received;
        ExpectGoesOn(WithText(), c, State::kInSlot);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(SchedulerReceived, TokensBehindTheTurnsEndAreRefused) {
  Case c;
  c.before = World::SomeIds(9, 1);
  c.prompt = World::SomeIds(5, 2);
  c.max_tokens = 8;
  World world(Options());
  const TestTurn whole = Whole(world, c);
  const Ids ids = whole.sink->ids();
  for (c.kept = 0; c.kept <= 3; c.kept += 3) {
    const auto record = MakeSession(world, c, whole, State::kInSlot);
    const Ids held = world.TokensOf("a");
    Case ended = c;
    ended.received = 6;
    ended.stop.stop_token_ids = {ids[4]};
    ASSERT_EQ(std::find(ids.begin(), ids.begin() + 4, ids[4]), ids.begin() + 4);
    const TestTurn turn = Resume(world, ended, ids, record);
    world.Run();
    EXPECT_EQ(Outcome(turn.sink->failed()), "ABORTED RESUME_MISMATCH");
    EXPECT_FALSE(turn.sink->started().has_value());
    EXPECT_EQ(world.TokensOf("a"), held);
    world.ExpectHealthy("a");
    world.ExpectAtRest();
    ASSERT_TRUE(world.store->Delete("a").ok());
  }
}

TEST_P(SchedulerReceived, CancelledBeforeItsFirstNewTokenNothingIsTakenOn) {
  Case c;
  c.before = World::SomeIds(9, 1);
  c.prompt = World::SomeIds(20, 2);
  c.max_tokens = 60;
  c.received = 50;
  World world(Options());
  const TestTurn whole = Whole(world, c);
  for (c.kept = 0; c.kept <= 5; c.kept += 5) {
    const auto record = MakeSession(world, c, whole, State::kInSlot);
    const Ids held = world.TokensOf("a");
    for (int steps = 1; steps <= 2; ++steps) {
      const TestTurn turn = Resume(world, c, whole.sink->ids(), record);
      for (int i = 0; i < steps; ++i) ASSERT_TRUE(world.Step());
      EXPECT_TRUE(turn.sink->started().has_value());
      turn.cancel->Cancel(CancelToken::Why::kCancelled);
      world.Run();
      EXPECT_EQ(Outcome(turn.sink->failed()), "CANCELLED CANCELLED");
      EXPECT_EQ(world.TokensOf("a"), held);
      EXPECT_EQ(RecordOf(world, "a"), record);
    }
    const TestTurn turn = Resume(world, c, whole.sink->ids(), record);
    world.Run();
    ExpectAsWhole(world, c, turn, whole);
    ASSERT_TRUE(world.store->Delete("a").ok());
  }
}

TEST_P(SchedulerReceived, AStepThatFailsTakesNothingOn) {
  Case c;
  c.before = World::SomeIds(9, 1);
  c.prompt = World::SomeIds(5, 2);
  c.max_tokens = 8;
  c.received = 4;
  World world(Options());
  const TestTurn whole = Whole(world, c);
  const auto record = MakeSession(world, c, whole, State::kInSlot);
  world.runner->FailStep(world.metrics.Get().steps,
                         absl::InternalError("broken"));
  const TestTurn broken = Resume(world, c, whole.sink->ids(), record);
  world.Run();
  EXPECT_EQ(Outcome(broken.sink->failed()), "INTERNAL STEP_FAILED");
  EXPECT_EQ(world.TokensOf("a"), c.before);
  const TestTurn turn = Resume(world, c, whole.sink->ids(), record);
  world.Run();
  ExpectAsWhole(world, c, turn, whole);
}

// Where the turn gives its slot up later, what it took on is the session's.
TEST_P(SchedulerReceived, ATurnThatWaitsForItsReaderComesBack) {
  WorldOptions options = Options();
  options.runner.slots = 1;
  options.scheduler.park_events = 4;
  Case c;
  c.prompt = World::SomeIds(5, 2);
  c.max_tokens = 40;
  c.received = 20;
  World world(options);
  const TestTurn whole = Whole(world, c);
  const auto record = MakeSession(world, c, whole, State::kInSlot);
  const TestTurn turn = Resume(world, c, whole.sink->ids(), record);
  turn.sink->StopReading();
  world.Run();
  EXPECT_EQ(world.metrics.Get().turns_parked, 1);
  world.Generate("", {5}, 3);
  world.Run();
  EXPECT_EQ(world.metrics.Get().turns_parked_out, 1);
  turn.sink->GoOnReading();
  world.Run();
  ExpectAsWhole(world, c, turn, whole);
  world.ExpectAtRest();
}

// Without a name nothing is kept; the client's ids are all there is.
TEST_P(SchedulerReceived, WithoutASessionTheTurnGoesOnAsWell) {
  const Ids prompt = World::SomeIds(5, 2);
  World world(Options());
  const Ids ids = world.runner->Continue(prompt, 12);
  for (int received = 0; received <= 12; ++received) {
    const TestTurn turn = world.Generate("", prompt, 12, [&](Turn& turn) {
      turn.received = received;
      turn.adopted = First(ids, received);
      std::static_pointer_cast<RecordingSink>(turn.sink)->ExpectFirst(received);
    });
    world.Run();
    EXPECT_EQ(turn.sink->ids(), Ids(ids.begin() + received, ids.end()));
    EXPECT_EQ(turn.sink->finished()->generated_tokens, 12);
    EXPECT_EQ(turn.sink->finished()->position, 5 + 12);
  }
  world.ExpectAtRest();
}

// What the session holds whole needs no step, only its end.
TEST_P(SchedulerReceived, ATurnThatIsThereWholeRunsNothing) {
  Case c;
  c.before = World::SomeIds(9, 1);
  c.prompt = World::SomeIds(5, 2);
  c.max_tokens = c.kept = c.received = 6;
  for (const State state : {State::kInSlot, State::kInImage, State::kLost}) {
    World world(Options());
    const TestTurn whole = Whole(world, c);
    const auto record = MakeSession(world, c, whole, state);
    const int64_t steps = world.metrics.Get().steps;
    const TestTurn turn = Resume(world, c, whole.sink->ids(), record);
    world.Run();
    EXPECT_EQ(world.metrics.Get().steps, steps);
    ExpectAsWhole(world, c, turn, whole);
    EXPECT_EQ(world.store->Get("a")->last_turn.outcome, "MAX_TOKENS");
    world.ExpectHealthy("a");
    world.ExpectAtRest();
  }
}

INSTANTIATE_TEST_SUITE_P(Runner, SchedulerReceived,
                         ::testing::Combine(::testing::Values(1, 2),
                                            ::testing::Bool()));

}  // namespace
}  // namespace txl
