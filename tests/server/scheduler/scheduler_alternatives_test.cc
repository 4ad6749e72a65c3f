// Alternatives of one context: each has the score that it has alone.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

using Alternatives = std::vector<Ids>;
using Scores = std::vector<std::optional<float>>;

TestTurn SubmitAlternatives(World& world, const std::string& session,
                            const Ids& context,
                            const Alternatives& alternatives) {
  return world.Submit(session, TurnKind::kAlternatives, context,
                      [&](Turn& turn) { turn.alternatives = alternatives; });
}

// Some that begin alike, some that do not, some that are the same.
Alternatives SomeAlternatives(int count, int tokens) {
  Alternatives alternatives;
  for (int i = 0; i < count; ++i) {
    Ids ids = World::SomeIds(tokens, i % 3);
    ids.back() = i % 7;
    ids[ids.size() / 2] = i % 4;
    ids.resize(ids.size() - (i % 5 == 0 ? ids.size() / 3 : 0));
    alternatives.push_back(ids);
  }
  return alternatives;
}

Scores ScoresOf(const TestTurn& turn) {
  Scores scores;
  for (const ScoredToken& token : turn.sink->scored()) {
    scores.push_back(token.logprob);
  }
  return scores;
}

// What kScore says of each, one after the other.
Scores Alone(World& world, const std::string& session, const Ids& context,
             const Alternatives& alternatives) {
  Scores scores;
  for (const Ids& ids : alternatives) {
    Ids input = context;
    input.insert(input.end(), ids.begin(), ids.end());
    const TestTurn turn = world.Submit(session, TurnKind::kScore, input);
    world.Run();
    const Scores all = ScoresOf(turn);
    EXPECT_EQ(all.size(), input.size());
    scores.insert(scores.end(), all.begin() + context.size(), all.end());
  }
  return scores;
}

WorldOptions With(int slots, bool derives) {
  WorldOptions options;
  options.runner.slots = slots;
  options.runner.derives = derives;
  return options;
}

int Calls(const World& world, const std::string& start) {
  const auto calls = world.runner->calls();
  return static_cast<int>(std::count_if(
      calls.begin(), calls.end(),
      [&](const std::string& call) { return call.rfind(start, 0) == 0; }));
}

TEST(SchedulerAlternatives, EachHasTheScoreThatItHasAlone) {
  for (const bool derives : {false, true}) {
    for (const int slots : {1, 2, 8}) {
      for (const int session : {0, 1, 30}) {
        for (const int context : {0, 1, 70}) {
          World world(With(slots, derives));
          Fill(world, 1, std::max(session, 1));
          const std::string id = session > 0 ? "s0" : "";
          const Alternatives some = SomeAlternatives(20, 6);
          const TestTurn turn =
              SubmitAlternatives(world, id, World::SomeIds(context, 9), some);
          world.Run();
          ASSERT_TRUE(turn.sink->finished().has_value());
          EXPECT_EQ(ScoresOf(turn),
                    Alone(world, id, World::SomeIds(context, 9), some))
              << slots << " " << session << " " << context;
          world.ExpectHealthy("s0");
          world.ExpectAtRest();
        }
      }
    }
  }
}

TEST(SchedulerAlternatives, AStateThatWasMovedOutIsShared) {
  for (const bool derives : {false, true}) {
    World world(With(3, derives));
    Fill(world, 4, 40);  // s0 has moved out
    for (const char* id : {"s1", "s2"})
      ASSERT_TRUE(world.store->Delete(SessionName::OfDefaultTenant(id)).ok());
    const Alternatives some = SomeAlternatives(30, 8);
    const TestTurn turn = SubmitAlternatives(world, "s0", {}, some);
    world.Run();
    EXPECT_GT(Calls(world, "copy"), 0);
    EXPECT_EQ(ScoresOf(turn), Alone(world, "s0", {}, some));
    world.ExpectHealthy("s0");
    world.ExpectHealthy("s3");
    world.ExpectAtRest();
  }
}

TEST(SchedulerAlternatives, LongOnesCostTheSessionNothing) {
  World world(With(2, false));
  Fill(world, 1, 40);
  const auto spare = static_cast<int>(world.runner->info().spare_rows);
  const Alternatives some = SomeAlternatives(6, spare + 9);
  const TestTurn turn =
      SubmitAlternatives(world, "s0", World::SomeIds(5, 2), some);
  world.Run();
  ASSERT_TRUE(turn.sink->finished().has_value());
  EXPECT_EQ(ScoresOf(turn), Alone(world, "s0", World::SomeIds(5, 2), some));
  EXPECT_EQ(world.TokensOf("s0").size(), 40u);
  world.ExpectHealthy("s0");
  world.ExpectAtRest();
}

TEST(SchedulerAlternatives, ACancelledTurnLeavesTheSessionAsItWas) {
  for (const int slots : {1, 4}) {
    for (int steps = 0;; ++steps) {
      World world(With(slots, false));
      Fill(world, 1, 30);
      const TestTurn turn = SubmitAlternatives(
          world, "s0", World::SomeIds(40, 2), SomeAlternatives(12, 30));
      for (int i = 0; i < steps; ++i) world.Step();
      const bool done = turn.sink->finished().has_value();
      turn.cancel->Cancel(CancelToken::Why::kCancelled);
      world.Run();
      EXPECT_EQ(turn.sink->failed().ok(), done);
      EXPECT_EQ(world.TokensOf("s0").size(), 30u);
      EXPECT_LE(world.metrics.Get().slots_used, 1);
      world.ExpectHealthy("s0");
      world.ExpectAtRest();
      if (done) break;
    }
  }
}

TEST(SchedulerAlternatives, WhoWaitsForASlotGetsALane) {
  World world(With(4, false));
  const TestTurn turn = SubmitAlternatives(world, "", World::SomeIds(20),
                                           SomeAlternatives(40, 9));
  while (Calls(world, "copy") == 0) ASSERT_TRUE(world.Step());
  EXPECT_EQ(world.metrics.Get().slots_used, 4);
  const TestTurn other = world.Submit("", TurnKind::kScore, World::SomeIds(9));
  while (!other.sink->finished().has_value()) ASSERT_TRUE(world.Step());
  EXPECT_FALSE(turn.sink->finished().has_value());
  world.Run();
  EXPECT_TRUE(turn.sink->finished().has_value());
  world.ExpectAtRest();
  EXPECT_EQ(world.metrics.Get().slots_used, 0);
}

TEST(SchedulerAlternatives, TheContextIsFedOnce) {
  World world(With(1, false));
  const Alternatives some = {{1, 2, 3}, {1, 2, 4}, {5}};
  const TestTurn turn = SubmitAlternatives(world, "", World::SomeIds(50), some);
  world.Run();
  EXPECT_EQ(world.metrics.Get().rows_prefill, 49);
  EXPECT_EQ(world.metrics.Get().rows_score, 5);  // 1 2 3, 4, 5
  EXPECT_EQ(turn.sink->scored().size(), 7u);
  world.ExpectAtRest();
}

}  // namespace
}  // namespace txl
