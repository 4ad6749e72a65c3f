// However a turn ends, its session is at a token border.

#include <functional>
#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

Ids Appended(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct EndCase {
  const char* name;
  TurnKind kind;
  int context;  // tokens of the session before
  int input;
};

std::ostream& operator<<(std::ostream& out, const EndCase& end_case) {
  return out << end_case.name;
}

std::string NameOf(
    const ::testing::TestParamInfo<std::tuple<int, EndCase>>& i) {
  return absl::StrCat(std::get<1>(i.param).name, "Depth", std::get<0>(i.param));
}

class SchedulerEnds
    : public ::testing::TestWithParam<std::tuple<int, EndCase>> {
 protected:
  static constexpr int kTokens = 6;

  WorldOptions Options() const {
    WorldOptions options;
    options.runner.depth = std::get<0>(GetParam());
    options.runner.slots = 3;
    options.scheduler.prompt_rows_per_step = 10;
    return options;
  }
  const EndCase& Case() const { return std::get<1>(GetParam()); }

  // Runs the case's turn beside another stream and lets `stop` act before
  // iteration `when`. Returns whether the turn was still there to be stopped.
  bool RunStopped(int when, const char* outcome,
                  const std::function<void(World&, TestTurn&)>& stop) {
    World world(Options());
    world.CreateSession("a");
    const Ids context = World::SomeIds(Case().context, 1);
    if (!context.empty()) world.Submit("a", TurnKind::kAppend, context);
    world.Run();
    const Ids other = World::SomeIds(4, 8);
    const TestTurn beside = world.Generate("", other, 40);
    const Ids input = World::SomeIds(Case().input, 2);
    TestTurn turn = world.Submit("a", Case().kind, input, [](Turn& turn) {
      turn.stop.max_tokens = kTokens;
    });
    for (int i = 0; i < when; ++i) world.Step();
    const bool stopped = !turn.sink->ended();
    if (stopped) stop(world, turn);
    world.Step();
    EXPECT_TRUE(turn.sink->ended() || !stopped) << "later than one step";
    world.Run();
    EXPECT_EQ(Outcome(turn.sink->failed()), stopped ? outcome : "OK");
    ExpectBorder(world, turn, context, input);
    EXPECT_EQ(beside.sink->ids(), world.runner->Continue(other, 40));
    world.ExpectAtRest();
    return stopped;
  }

  void ExpectBorder(World& world, const TestTurn& turn, const Ids& context,
                    const Ids& input) {
    if (!world.store->Get("a").ok()) return;  // deleted
    const Ids delivered = turn.sink->ids();
    const Ids all = Appended(
        input, world.runner->Continue(Appended(context, input), kTokens));
    Ids expected = context;
    const bool appended =
        Case().kind == TurnKind::kAppend && turn.sink->finished().has_value();
    if (appended || !delivered.empty()) {
      expected = Appended(context, Ids(all.begin(), all.begin() + input.size() +
                                                        delivered.size()));
    }
    EXPECT_EQ(world.TokensOf("a"), expected);
    world.ExpectHealthy("a");
    // The state itself survived: nothing had to be fed again.
    EXPECT_EQ(world.metrics.Get().rows_rebuild, 0);
  }
};

TEST_P(SchedulerEnds, CancellingBeforeAnyIterationLeavesATokenBorder) {
  int when = 0;
  while (RunStopped(when, "CANCELLED CANCELLED", [](World&, TestTurn& turn) {
    turn.cancel->Cancel(CancelToken::Why::kCancelled);
  })) {
    ++when;
  }
  EXPECT_GE(when, 1);
}

TEST_P(SchedulerEnds, ADeadlineFromTheCallLeavesATokenBorder) {
  int when = 0;
  while (RunStopped(when, "DEADLINE_EXCEEDED DEADLINE_EXCEEDED",
                    [](World&, TestTurn& turn) {
                      turn.cancel->Cancel(CancelToken::Why::kDeadline);
                    })) {
    ++when;
  }
  EXPECT_GE(when, 1);
}

TEST_P(SchedulerEnds, DeletingTheSessionEndsItsTurnAtOnce) {
  int when = 0;
  while (
      RunStopped(when, "ABORTED SESSION_DELETED", [](World& world, TestTurn&) {
        EXPECT_TRUE(world.store->Delete("a").ok());
      })) {
    ++when;
  }
  EXPECT_GE(when, 1);
}

TEST_P(SchedulerEnds, AFailedStepAtAnyTimeLeavesATokenBorder) {
  for (int step = 0;; ++step) {
    World world(Options());
    world.CreateSession("a");
    const Ids context = World::SomeIds(Case().context, 1);
    if (!context.empty()) world.Submit("a", TurnKind::kAppend, context);
    world.Run();
    const auto before = static_cast<int64_t>(world.runner->plans().size());
    world.runner->FailStep(before + step, absl::InternalError("device"));
    const Ids input = World::SomeIds(Case().input, 2);
    const TestTurn turn = world.Submit("a", Case().kind, input, [](Turn& turn) {
      turn.stop.max_tokens = kTokens;
    });
    world.Run();
    const auto after = static_cast<int64_t>(world.runner->plans().size());
    if (before + step >= after) {
      EXPECT_TRUE(turn.sink->finished().has_value());
      EXPECT_GT(step, 0);
      return;
    }
    // A step that only overlapped the turn's end does not matter to it.
    if (!turn.sink->finished().has_value()) {
      EXPECT_EQ(Outcome(turn.sink->failed()), "INTERNAL STEP_FAILED");
    }
    ExpectBorder(world, turn, context, input);
    world.ExpectAtRest();
  }
}

TEST_P(SchedulerEnds, AfterAnyEndTheSessionSurvivesAlsoMovingOut) {
  for (int when = 0; when < 12; ++when) {
    World world(Options());
    world.CreateSession("a");
    const Ids context = World::SomeIds(Case().context, 1);
    if (!context.empty()) world.Submit("a", TurnKind::kAppend, context);
    world.Run();
    const Ids input = World::SomeIds(Case().input, 2);
    const TestTurn turn = world.Submit("a", Case().kind, input, [](Turn& turn) {
      turn.stop.max_tokens = kTokens;
    });
    for (int i = 0; i < when; ++i) world.Step();
    turn.cancel->Cancel(CancelToken::Why::kCancelled);
    world.Run();
    for (int i = 0; i < 3; ++i) {  // every slot is taken by another session
      world.CreateSession(absl::StrCat("other", i));
      world.ExpectHealthy(absl::StrCat("other", i));
    }
    ExpectBorder(world, turn, context, input);
    world.ExpectAtRest();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Turns, SchedulerEnds,
    ::testing::Combine(
        ::testing::Values(1, 2),
        ::testing::Values(EndCase{"FreshShort", TurnKind::kGenerate, 0, 5},
                          EndCase{"FreshLong", TurnKind::kGenerate, 0, 45},
                          EndCase{"OneTokenLong", TurnKind::kGenerate, 1, 45},
                          EndCase{"NoPrompt", TurnKind::kGenerate, 20, 0},
                          EndCase{"Short", TurnKind::kGenerate, 20, 5},
                          EndCase{"JustShort", TurnKind::kGenerate, 20, 14},
                          EndCase{"JustLong", TurnKind::kGenerate, 20, 15},
                          EndCase{"Long", TurnKind::kGenerate, 60, 45},
                          EndCase{"AppendShort", TurnKind::kAppend, 20, 9},
                          EndCase{"AppendLong", TurnKind::kAppend, 60, 45},
                          EndCase{"AppendFresh", TurnKind::kAppend, 0, 45},
                          EndCase{"ScoreShort", TurnKind::kScore, 20, 9},
                          EndCase{"ScoreLong", TurnKind::kScore, 60, 45},
                          EndCase{"ScoreFresh", TurnKind::kScore, 0, 45})),
    NameOf);

TEST(SchedulerEnd, TheLeaseIsFreeWhenTheClientSeesTheEnd) {
  World world;
  world.CreateSession("a");
  bool finished_free = false;
  bool failed_free = false;
  const TestTurn first = world.Generate("a", {1, 2}, 3);
  first.sink->AtEnd([&] { finished_free = world.store->Acquire("a").ok(); });
  world.Run();
  const TestTurn second = world.Generate("a", {1, 2}, 3);
  second.sink->AtEnd([&] { failed_free = world.store->Acquire("a").ok(); });
  second.cancel->Cancel(CancelToken::Why::kCancelled);
  world.Run();
  EXPECT_TRUE(finished_free);
  EXPECT_TRUE(failed_free);
  world.ExpectAtRest();
}

TEST(SchedulerEnd, AWaitingTurnEndsWithoutASlotOrAStep) {
  WorldOptions options;
  options.runner.slots = 1;
  World world(options);
  const TestTurn runs = world.Generate("", {1}, 50);
  world.Step();
  const TestTurn cancelled = world.Generate("", {2}, 5);
  const absl::Duration now = world.fake_clock.Monotonic();
  const TestTurn late = world.Generate(
      "", {3}, 5, [&](Turn& turn) { turn.deadline = now + absl::Seconds(1); });
  cancelled.cancel->Cancel(CancelToken::Why::kCancelled);
  world.Step();
  EXPECT_EQ(Outcome(cancelled.sink->failed()), "CANCELLED CANCELLED");
  EXPECT_FALSE(late.sink->ended());
  world.fake_clock.Advance(absl::Seconds(1));
  world.Step();
  EXPECT_EQ(Outcome(late.sink->failed()),
            "DEADLINE_EXCEEDED DEADLINE_EXCEEDED");
  EXPECT_FALSE(late.sink->started().has_value());
  world.Run();
  EXPECT_EQ(runs.sink->ids().size(), 50u);
  const Snapshot s = world.metrics.Get();
  EXPECT_EQ(s.turns_finished.at("OK"), 1);
  EXPECT_EQ(s.turns_finished.at("CANCELLED"), 1);
  EXPECT_EQ(s.turns_finished.at("DEADLINE_EXCEEDED"), 1);
  world.ExpectAtRest();
}

TEST(SchedulerEnd, ARunningTurnEndsAtItsDeadline) {
  World world;
  world.CreateSession("a");
  const absl::Duration now = world.fake_clock.Monotonic();
  const TestTurn turn = world.Generate("a", {1, 2}, 100, [&](Turn& turn) {
    turn.deadline = now + absl::Seconds(5);
    turn.identity = {"r1", "digest"};
  });
  for (int i = 0; i < 10; ++i) world.Step();
  EXPECT_FALSE(turn.sink->ended());
  world.fake_clock.Advance(absl::Seconds(5));
  world.Step();
  EXPECT_EQ(Outcome(turn.sink->failed()),
            "DEADLINE_EXCEEDED DEADLINE_EXCEEDED");
  const LastTurn last = world.store->Get("a")->last_turn;
  EXPECT_EQ(last.request_id, "r1");
  EXPECT_EQ(last.outcome, "DEADLINE_EXCEEDED");
  EXPECT_EQ(last.prompt_tokens, 2);
  EXPECT_EQ(last.generated_tokens,
            static_cast<int64_t>(turn.sink->ids().size()));
  world.Run();
  world.ExpectHealthy("a");
  world.ExpectAtRest();
}

TEST(SchedulerEnd, LastTurnTellsOfTurnsThatChangedTheSession) {
  World world;
  world.CreateSession("a");
  world.Generate("a", {1, 2}, 3, [](Turn& turn) {
    turn.identity = {"one", "digest"};
  });
  world.Run();
  world.Submit("a", TurnKind::kScore, {4, 5}, [](Turn& turn) {
    turn.identity = {"score", "digest"};
  });
  world.Run();
  LastTurn last = world.store->Get("a")->last_turn;
  EXPECT_EQ(last.request_id, "one");
  EXPECT_EQ(last.outcome, "MAX_TOKENS");
  EXPECT_EQ(last.start_position, 0);
  EXPECT_EQ(last.generated_tokens, 3);
  world.Submit("a", TurnKind::kAppend, {4, 5}, [](Turn& turn) {
    turn.identity = {"two", "digest"};
  });
  world.Run();
  last = world.store->Get("a")->last_turn;
  EXPECT_EQ(last.request_id, "two");
  EXPECT_EQ(last.outcome, "OK");
  EXPECT_EQ(last.start_position, 5);
  world.ExpectAtRest();
}

TEST(SchedulerEnd, TimesAreThoseOfQueuePromptAndStream) {
  WorldOptions options;
  options.runner.depth = 1;
  World world(options);
  const TestTurn turn = world.Generate("", {1, 2}, 3);
  world.fake_clock.Advance(absl::Seconds(2));  // waits
  turn.sink->StopReading();
  world.Step();  // admitted, first token
  for (int i = 0; i < 2; ++i) {
    world.fake_clock.Advance(absl::Seconds(4));
    world.Step();
  }
  ASSERT_TRUE(turn.sink->finished().has_value());
  const TurnTiming timing = turn.sink->finished()->timing;
  EXPECT_EQ(timing.queued_seconds, 2);
  EXPECT_EQ(timing.prefill_seconds, 0);
  EXPECT_EQ(timing.decode_seconds, 8);
  world.Run();
  world.ExpectAtRest();
}

}  // namespace
}  // namespace txl
