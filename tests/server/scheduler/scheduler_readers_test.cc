// Tokens that are guessed ahead: the same texts in fewer steps. The fake
// model's texts depend on few ids and so come to repeat themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "model/text/ngram_table.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

WorldOptions Guessing() {
  WorldOptions options;
  options.runner.verifies_guesses = true;
  options.runner.by_position = false;
  options.runner.window = 2;
  options.runner.row_seconds = 0.0001;
  return options;
}

// A row with a guess stands behind a row of its slot that samples.
int64_t GuessRows(const World& world) {
  int64_t guesses = 0;
  for (const StepPlan& plan : world.runner->plans()) {
    for (size_t i = 1; i < plan.rows.size(); ++i) {
      guesses += plan.rows[i].slot == plan.rows[i - 1].slot &&
                 plan.rows[i - 1].kind == RowKind::kDecode;
    }
  }
  return guesses;
}

// What follows two ids in a text of the fake model, or another id than that.
std::shared_ptr<const NgramTable> Table(const World& world, int32_t added) {
  auto table = std::make_shared<NgramTable>(2, 0, 5000);
  for (int32_t a = 0; a < 50; ++a) {
    for (int32_t b = 0; b < 50; ++b) {
      const uint64_t hash = ExtendNgramHash(ExtendNgramHash(0, b), a);
      table->Add(hash, {(world.runner->NextToken({a, b}) + added) % 50, 7});
    }
  }
  return table;
}

TEST(SchedulerGuessesTest, ATextThatRepeatsItselfTakesFewerSteps) {
  World world(Guessing());
  const Ids prompt = World::SomeIds(4);
  const TestTurn turn = world.Generate("", prompt, 400);
  world.Run();
  EXPECT_EQ(turn.sink->ids(), world.runner->Continue(prompt, 400));
  const Snapshot s = world.metrics.Get();
  EXPECT_LT(s.steps, 250);
  EXPECT_EQ(s.tokens_guessed, GuessRows(world));
  EXPECT_GT(s.guesses_accepted, 150);
  // Alone, every accepted guess is a step less.
  EXPECT_EQ(s.steps_saved, s.guesses_accepted);
  EXPECT_EQ(s.steps + s.steps_saved, 400);
  EXPECT_EQ(s.rows_discarded, s.tokens_guessed - s.guesses_accepted);
  EXPECT_EQ(s.tokens_discarded, 0);
  world.ExpectAtRest();
}

TEST(SchedulerGuessesTest, WithoutThemNothingIsGuessed) {
  WorldOptions never = Guessing();
  never.scheduler.speculate_tokens = 0;
  WorldOptions unable = Guessing();
  unable.runner.verifies_guesses = false;
  for (const WorldOptions& options : {never, unable}) {
    World world(options);
    const TestTurn turn = world.Generate("", World::SomeIds(4), 100);
    world.Run();
    EXPECT_EQ(turn.sink->ids(), world.runner->Continue(World::SomeIds(4), 100));
    EXPECT_EQ(GuessRows(world), 0);
    EXPECT_EQ(world.metrics.Get().tokens_guessed, 0);
    world.ExpectAtRest();
  }
}

TEST(SchedulerGuessesTest, AtMostAsManyAsAreAllowed) {
  WorldOptions options = Guessing();
  options.scheduler.speculate_tokens = 3;
  World world(options);
  world.Generate("", World::SomeIds(4), 300);
  world.Run();
  size_t most = 0;
  for (const StepPlan& plan : world.runner->plans()) {
    if (plan.rows.front().kind != RowKind::kDecode) continue;
    most = std::max(most, plan.rows.size());
  }
  EXPECT_EQ(most, 4u);
  world.ExpectAtRest();
}

TEST(SchedulerGuessesTest, WrongGuessesChangeNothingAndEnd) {
  const World like(Guessing());
  WorldOptions options = Guessing();
  options.scheduler.ngrams = Table(like, 1);
  World world(options);
  // Another text each, so that the session itself gives no guess.
  int64_t tokens = 0;
  for (int i = 0; i < 60; ++i) {
    const Ids prompt = World::SomeIds(3, i);
    const TestTurn turn = world.Generate("", prompt, 12);
    world.Run();
    EXPECT_EQ(turn.sink->ids(), world.runner->Continue(prompt, 12));
    tokens += 12;
  }
  const Snapshot s = world.metrics.Get();
  EXPECT_GT(s.tokens_guessed, 0);
  EXPECT_LT(s.tokens_guessed, tokens / 4);
  EXPECT_GE(s.rows_discarded, s.tokens_guessed - s.guesses_accepted);
  world.ExpectAtRest();
}

TEST(SchedulerGuessesTest, SixtyFourTurnsGetTheirOwnTexts) {
  const World like(Guessing());
  for (const int32_t added : {0, 1}) {
    WorldOptions options = Guessing();
    options.runner.slots = 24;
    options.runner.row_seconds = 0.00001;  // company leaves room for guesses
    options.runner.max_rows = 40;
    options.scheduler.prompt_rows_per_step = 20;
    options.scheduler.ngrams = Table(like, added);
    World world(options);
    ExpectStaggeredTurns(world, 60);
    EXPECT_GT(world.metrics.Get().tokens_guessed, 0);
    world.ExpectAtRest();
  }
}

TEST(SchedulerGuessesTest, AnEndInTheMiddleOfGuessesIsTheEnd) {
  const World like(Guessing());
  const Ids prompt = World::SomeIds(4);
  const Ids text = like.runner->Continue(prompt, 60);
  for (size_t at = 5; at < 40; ++at) {
    if (std::find(text.begin(), text.begin() + at, text[at]) !=
        text.begin() + at) {
      continue;  // the id has been there before
    }
    WorldOptions options = Guessing();
    options.scheduler.ngrams = Table(like, 0);
    World world(options);
    world.CreateSession("a");
    const TestTurn turn = world.Generate("a", prompt, 60, [&](Turn& turn) {
      turn.stop.stop_token_ids = {text[at]};
    });
    world.Run();
    EXPECT_EQ(turn.sink->ids(), Ids(text.begin(), text.begin() + at + 1));
    ASSERT_TRUE(turn.sink->finished().has_value());
    EXPECT_EQ(turn.sink->finished()->reason, FinishReason::kStopToken);
    world.ExpectHealthy("a", 20);
    world.ExpectAtRest();
  }
}

TEST(SchedulerGuessesTest, NoTokenIsSampledBehindTheLast) {
  const World like(Guessing());
  for (int count = 1; count < 30; ++count) {
    WorldOptions options = Guessing();
    options.scheduler.ngrams = Table(like, 0);
    World world(options);
    world.CreateSession("a");
    const TestTurn turn = world.Generate("a", World::SomeIds(3), count);
    world.Run();
    EXPECT_EQ(turn.sink->ids(),
              world.runner->Continue(World::SomeIds(3), count));
    EXPECT_EQ(world.metrics.Get().tokens_discarded, 0);
    world.ExpectHealthy("a");
    world.ExpectAtRest();
  }
}

TEST(SchedulerGuessesTest, AReaderThatStandsStillIsSentNoMoreThanItTakes) {
  const World like(Guessing());
  WorldOptions options = Guessing();
  options.scheduler.ngrams = Table(like, 0);
  options.scheduler.park_events = 5;
  World world(options);
  const TestTurn turn = world.Generate("", World::SomeIds(3), 80);
  turn.sink->StopReading();
  for (int i = 0; i < 2000 && !turn.sink->ended(); ++i) {
    world.Step();
    EXPECT_LE(turn.sink->Unsent(), 6);  // with Started
    if (i % 3 == 0 && turn.sink->Unsent() > 0) turn.sink->Read(1);
  }
  world.Run();
  EXPECT_EQ(turn.sink->ids(), world.runner->Continue(World::SomeIds(3), 80));
  EXPECT_GT(world.metrics.Get().guesses_accepted, 0);
  world.ExpectAtRest();
}

// Steps and rows that fail, turns that are cancelled while guesses are on
// their way: the session is where its last token left it.
TEST(SchedulerGuessesTest, WhatBreaksOffLeavesTheSessionAtItsLastToken) {
  const World like(Guessing());
  for (int moment = 2; moment < 12; ++moment) {
    for (const int fault : {0, 1, 2}) {
      WorldOptions options = Guessing();
      options.scheduler.ngrams = Table(like, moment % 2);
      World world(options);
      world.CreateSession("a");
      const TestTurn turn = world.Generate("a", World::SomeIds(5), 200);
      if (fault == 0) {
        world.runner->FailStep(moment, absl::InternalError("gone"));
      } else if (fault == 1) {
        world.runner->FailRow(0, 4 + 3 * moment);
      }
      for (int i = 0; i < moment; ++i) world.Step();
      if (fault == 2) turn.cancel->Cancel(CancelToken::Why::kCancelled);
      world.Run();
      EXPECT_FALSE(turn.sink->failed().ok()) << fault << " at " << moment;
      const Ids said = turn.sink->ids();
      EXPECT_EQ(said, world.runner->Continue(World::SomeIds(5),
                                             static_cast<int>(said.size())));
      world.ExpectHealthy("a", 20);
      world.ExpectAtRest();
    }
  }
}

TEST(SchedulerGuessesTest, LogprobsAndAlternativesAreThoseOfEachToken) {
  const World like(Guessing());
  WorldOptions options = Guessing();
  options.scheduler.ngrams = Table(like, 0);
  World world(options);
  Ids ids = World::SomeIds(5);
  const TestTurn turn =
      world.Generate("", ids, 60, [](Turn& turn) { turn.top_logprobs = 2; });
  world.Run();
  for (const TokenEvent& token : turn.sink->tokens()) {
    EXPECT_EQ(token.logprob, world.runner->LogProbs(ids)[token.token_id]);
    ASSERT_EQ(token.top_logprobs.size(), 2u);
    EXPECT_EQ(token.top_logprobs[0].token_id, world.runner->NextToken(ids));
    ids.push_back(token.token_id);
  }
  EXPECT_EQ(ids.size(), 65u);
  EXPECT_GT(world.metrics.Get().guesses_accepted, 20);
  world.ExpectAtRest();
}

}  // namespace

}  // namespace txl
