// A small model guesses: the same texts in fewer steps, whatever it says. The
// fake model's texts depend on positions, so that nothing else can guess them.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

FakeStepRunnerOptions Model() {
  FakeStepRunnerOptions options;
  options.verifies_guesses = true;
  options.window = 10;
  options.row_seconds = 0.00001;
  return options;
}

WorldOptions Big() {
  WorldOptions options;
  options.runner = Model();
  return options;
}

// One whose step takes a tenth of that, and whose tokens are the model's, or
// others.
FakeStepRunnerOptions Small(bool right) {
  FakeStepRunnerOptions options = Model();
  options.device_seconds = 0.0001;
  options.row_seconds = 0.000001;
  options.by_position = right;
  return options;
}

struct DraftWorld {
  explicit DraftWorld(const FakeStepRunnerOptions& small,
                      WorldOptions options = Big())
      : draft(std::make_shared<FakeStepRunner>(small)) {
    options.scheduler.draft = draft;
    world = std::make_unique<World>(options);
  }
  ~DraftWorld() {
    EXPECT_EQ(draft->violations(), std::vector<std::string>());
    world->ExpectAtRest();
  }

  std::shared_ptr<FakeStepRunner> draft;
  std::unique_ptr<World> world;
};

TEST(SchedulerDraftTest, ATextThatADraftKnowsTakesFewerSteps) {
  DraftWorld with(Small(true));
  const Ids prompt = World::SomeIds(4);
  const TestTurn turn = with.world->Generate("", prompt, 400);
  with.world->Run();
  EXPECT_EQ(turn.sink->ids(), with.world->runner->Continue(prompt, 400));
  const Snapshot s = with.world->metrics.Get();
  EXPECT_LT(s.steps, 150);
  EXPECT_EQ(s.steps + s.steps_saved, 400);
  EXPECT_EQ(s.steps_saved, s.guesses_accepted);
}

TEST(SchedulerDraftTest, AWrongDraftChangesNothingAndIsLeftAlone) {
  DraftWorld with(Small(false));
  const Ids prompt = World::SomeIds(4);
  const TestTurn turn = with.world->Generate("", prompt, 1000);
  with.world->Run();
  EXPECT_EQ(turn.sink->ids(), with.world->runner->Continue(prompt, 1000));
  EXPECT_LT(with.world->metrics.Get().tokens_guessed, 100);
  EXPECT_GT(with.draft->plans().size(), 0u);
  EXPECT_LT(with.draft->plans().size(), 120u);
}

TEST(SchedulerDraftTest, ADraftThatIsAsSlowAsTheModelIsLeftAlone) {
  FakeStepRunnerOptions slow = Model();
  DraftWorld with(slow);
  const Ids prompt = World::SomeIds(4);
  const TestTurn turn = with.world->Generate("", prompt, 1000);
  with.world->Run();
  EXPECT_EQ(turn.sink->ids(), with.world->runner->Continue(prompt, 1000));
  EXPECT_LT(with.draft->plans().size(), 30u);
}

// Turns come and go in few slots, a quarter of them in sessions that go on.
TEST(SchedulerDraftTest, SixtyFourTurnsGetTheirOwnTexts) {
  for (const bool right : {true, false}) {
    WorldOptions options = Big();
    options.runner.slots = 6;
    options.runner.max_rows = 40;
    options.scheduler.prompt_rows_per_step = 20;
    FakeStepRunnerOptions small = Small(right);
    small.slots = 6;
    DraftWorld with(small, options);
    World& world = *with.world;
    for (const char* id : {"a", "b", "c", "d"}) world.CreateSession(id);
    std::vector<TestTurn> turns;
    std::vector<Ids> expected;
    for (int i = 0; i < 64; ++i) {
      const std::string session =
          i % 16 == 5 ? std::string(1, static_cast<char>('a' + i / 16)) : "";
      const Ids prompt = World::SomeIds(1 + (i * 11) % 60, i);
      const int count = 1 + (i * 5) % 60;
      turns.push_back(world.Generate(session, prompt, count));
      expected.push_back(world.runner->Continue(prompt, count));
      for (int step = 0; step < i % 4; ++step) world.Step();
    }
    world.Run();
    for (size_t i = 0; i < turns.size(); ++i) {
      EXPECT_EQ(turns[i].sink->ids(), expected[i]) << "turn " << i;
    }
    for (const char* id : {"a", "b", "c", "d"}) world.ExpectHealthy(id, 30);
    EXPECT_GT(world.metrics.Get().tokens_guessed, 0);
    EXPECT_EQ(world.metrics.Get().guesses_accepted > 100, right);
  }
}

TEST(SchedulerDraftTest, StreamsShareADraftsSteps) {
  DraftWorld with(Small(true));
  // One that is alone shows what guesses cost.
  with.world->Generate("", World::SomeIds(5, 9), 100);
  with.world->Run();
  std::vector<TestTurn> turns;
  for (int i = 0; i < 4; ++i) {
    turns.push_back(with.world->Generate("", World::SomeIds(5, i), 200));
  }
  with.world->Run();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(turns[i].sink->ids(),
              with.world->runner->Continue(World::SomeIds(5, i), 200));
  }
  size_t widest = 0;
  for (const StepPlan& plan : with.draft->plans()) {
    size_t slots = 1;
    for (size_t i = 1; i < plan.rows.size(); ++i) {
      slots += plan.rows[i].slot != plan.rows[i - 1].slot;
    }
    widest = std::max(widest, slots);
  }
  EXPECT_EQ(widest, 4u);
}

// The draft samples as the stream does: here under the same ban.
TEST(SchedulerDraftTest, ADraftObeysAStreamsParameters) {
  DraftWorld with(Small(true));
  const Ids prompt = World::SomeIds(4);
  const Ids text = with.world->runner->Continue(prompt, 40);
  const Ids banned = {text[30]};
  const TestTurn turn = with.world->Generate("", prompt, 300, [&](Turn& turn) {
    turn.stop.stop_token_ids = banned;
    turn.sampling.min_tokens = 300;
  });
  with.world->Run();
  Ids ids = prompt;
  for (const int32_t id : turn.sink->ids()) {
    ASSERT_EQ(id, with.world->runner->NextToken(ids, banned));
    ids.push_back(id);
  }
  EXPECT_EQ(ids.size(), 304u);
  const Snapshot s = with.world->metrics.Get();
  EXPECT_GT(s.guesses_accepted, 150);
  EXPECT_LT(s.tokens_guessed - s.guesses_accepted, 40);
}

TEST(SchedulerDraftTest, StreamsGoOnWithoutADraftThatFails) {
  for (const int64_t step : {0, 3, 20}) {
    DraftWorld with(Small(true));
    with.draft->FailStep(step, absl::InternalError("gone"));
    const Ids prompt = World::SomeIds(4);
    const TestTurn turn = with.world->Generate("", prompt, 200);
    with.world->Run();
    EXPECT_EQ(turn.sink->ids(), with.world->runner->Continue(prompt, 200));
    EXPECT_EQ(with.draft->plans().size(), static_cast<size_t>(step) + 1);
  }
}

TEST(SchedulerDraftTest, WithoutSpeculationADraftIsNeverAsked) {
  WorldOptions options = Big();
  options.scheduler.speculate_tokens = 0;
  DraftWorld with(Small(true), options);
  with.world->Generate("", World::SomeIds(4), 100);
  with.world->Run();
  EXPECT_EQ(with.draft->calls(), std::vector<std::string>());
}

}  // namespace
}  // namespace txl
