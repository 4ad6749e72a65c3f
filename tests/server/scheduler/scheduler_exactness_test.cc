// A turn's tokens are a function of its session's ids alone: not of company,
// order, cuts, slots or moves.

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/model/sampling/some_kinds.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

Ids Concat(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Parameters: steps in flight; whether tokens are guessed, of texts that repeat
// themselves.
class SchedulerExactness
    : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  WorldOptions Options() const {
    WorldOptions options;
    options.runner.depth = std::get<0>(GetParam());
    if (!std::get<1>(GetParam())) return options;
    options.runner.verifies_guesses = true;
    options.runner.by_position = false;
    options.runner.window = 2;
    return options;
  }
};

TEST_P(SchedulerExactness, OneTurnGivesTheModelsTokensForEveryPromptLength) {
  World world(Options());
  // Around the spare rows (16), the memory (32) and beyond two rings.
  for (int length : {1, 2, 3, 14, 15, 16, 17, 18, 31, 32, 33, 48, 49, 130}) {
    const Ids prompt = World::SomeIds(length, length);
    const TestTurn turn = world.Generate("", prompt, 20);
    world.Run();
    EXPECT_EQ(turn.sink->ids(), world.runner->Continue(prompt, 20)) << length;
    ASSERT_TRUE(turn.sink->finished().has_value());
    EXPECT_EQ(turn.sink->finished()->reason, FinishReason::kMaxTokens);
    EXPECT_EQ(turn.sink->finished()->position, length + 20);
    EXPECT_EQ(turn.sink->finished()->prompt_tokens, length);
    EXPECT_EQ(turn.sink->finished()->generated_tokens, 20);
  }
  world.ExpectAtRest();
}

TEST_P(SchedulerExactness, TurnsOfASessionGoOnWhereTheLastOneEnded) {
  World world(Options());
  world.CreateSession("a");
  Ids ids;
  for (int length : {3, 0, 1, 40, 0, 2, 20, 5}) {
    const Ids prompt = World::SomeIds(length, length);
    const int64_t start = static_cast<int64_t>(ids.size());
    ids = Concat(ids, prompt);
    const Ids expected = world.runner->Continue(ids, 7);
    ids = Concat(ids, expected);
    const TestTurn turn = world.Generate("a", prompt, 7);
    world.Run();
    EXPECT_EQ(turn.sink->ids(), expected) << length;
    ASSERT_TRUE(turn.sink->started().has_value());
    EXPECT_EQ(turn.sink->started()->position, start);
    EXPECT_EQ(turn.sink->started()->prompt_tokens, length);
    EXPECT_EQ(world.TokensOf("a"), ids);
  }
  world.ExpectAtRest();
}

TEST_P(SchedulerExactness, SixtyFourStaggeredTurnsGiveWhatEachGivesAlone) {
  WorldOptions options = Options();
  options.runner.slots = 24;
  options.scheduler.prompt_rows_per_step = 20;
  World world(options);
  ExpectStaggeredTurns(world, 23);
  world.ExpectAtRest();
}

TEST_P(SchedulerExactness, ThreeTimesMoreSessionsThanSlotsTakeTurns) {
  WorldOptions options = Options();
  options.runner.slots = 4;
  World world(options);
  std::vector<Ids> ids(12);
  for (int s = 0; s < 12; ++s) world.CreateSession(absl::StrCat("s", s));
  for (int round = 0; round < 6; ++round) {
    std::vector<TestTurn> turns;
    std::vector<Ids> expected;
    for (int s = 0; s < 12; ++s) {
      const Ids prompt = World::SomeIds((s * 5 + round * 9) % 37 + 1, s);
      ids[s] = Concat(ids[s], prompt);
      expected.push_back(world.runner->Continue(ids[s], 4));
      ids[s] = Concat(ids[s], expected.back());
      turns.push_back(world.Generate(absl::StrCat("s", s), prompt, 4));
    }
    world.Run();
    for (int s = 0; s < 12; ++s) {
      EXPECT_EQ(turns[s].sink->ids(), expected[s]) << s << " in " << round;
    }
  }
  const Snapshot s = world.metrics.Get();
  EXPECT_EQ(s.slots_used, 4);
  EXPECT_GE(s.sessions_moved_out, 8 * 6);
  EXPECT_EQ(s.sessions_moved_out - s.sessions_moved_in, 8);
  EXPECT_EQ(s.rows_rebuild, 0);
  world.ExpectAtRest();
}

// Each reader takes events at its own pace, so that turns give their slots up
// and come back at any token.
void ExpectTheSameTextsForReadersThatTrickle(WorldOptions options) {
  options.runner.slots = 4;
  options.scheduler.park_events = 5;
  World world(options);
  std::vector<TestTurn> turns;
  std::vector<Ids> expected;
  for (int i = 0; i < 14; ++i) {
    const Ids prompt = World::SomeIds(1 + (i * 11) % 60, i);
    const int count = 60 + i;
    const int32_t first = world.runner->NextToken(prompt);
    turns.push_back(world.Generate("", prompt, count, [&](Turn& turn) {
      // Banned by position: the sampling state comes back whole.
      turn.stop.end_token_ids = {first};
      turn.stop.max_tokens = count;
      turn.sampling.min_tokens = count + 1;
    }));
    Ids ids = prompt;
    for (int t = 0; t < count; ++t) {
      ids.push_back(world.runner->NextToken(ids, {first}));
    }
    expected.emplace_back(ids.begin() + prompt.size(), ids.end());
    if (i % 7 != 0) turns.back().sink->StopReading();
  }
  const auto done = [&] {
    return std::all_of(turns.begin(), turns.end(),
                       [](const TestTurn& turn) { return turn.sink->ended(); });
  };
  for (int i = 0; !done(); ++i) {
    ASSERT_LT(i, 20'000);
    world.Step();
    for (size_t t = 0; t < turns.size(); ++t) {
      const RecordingSink& sink = *turns[t].sink;
      if (i % (t + 1) == 0 && sink.Unsent() > 0) turns[t].sink->Read(1);
    }
  }
  world.Run();
  for (size_t t = 0; t < turns.size(); ++t) {
    EXPECT_EQ(turns[t].sink->ids(), expected[t]) << "turn " << t;
  }
  EXPECT_GT(world.metrics.Get().parked_moves, 20);
  world.ExpectAtRest();
}

TEST_P(SchedulerExactness, ReadersThatTrickleGetTheSameText) {
  ExpectTheSameTextsForReadersThatTrickle(Options());
}

TEST_P(SchedulerExactness, ReadersThatTrickleGetTheSameTextWhereStatesDerive) {
  WorldOptions options = Options();
  options.runner.derives = true;
  options.runner.imports_aside = true;
  ExpectTheSameTextsForReadersThatTrickle(options);
}

TEST_P(SchedulerExactness, ReadersThatTrickleGetTheSameTextWithoutImages) {
  WorldOptions options = Options();
  options.store.image_bytes = 0;
  ExpectTheSameTextsForReadersThatTrickle(options);
}

TEST_P(SchedulerExactness, AMoreCrowdedStepThanRowsFitStillServesEveryone) {
  WorldOptions options = Options();
  options.runner.slots = 12;
  options.runner.max_rows = 5;
  World world(options);
  std::vector<TestTurn> turns;
  for (int i = 0; i < 12; ++i) {
    turns.push_back(world.Generate("", World::SomeIds(i + 1, i), 9));
  }
  world.Run();
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(turns[i].sink->ids(),
              world.runner->Continue(World::SomeIds(i + 1, i), 9));
  }
  world.ExpectAtRest();
}

TEST_P(SchedulerExactness, AppendInAnyCutsGivesTheSameSession) {
  World world(Options());
  const Ids all = World::SomeIds(90);
  for (int cut : {1, 2, 15, 16, 17, 33, 90}) {
    const std::string id = absl::StrCat("cut", cut);
    world.CreateSession(id);
    for (size_t begin = 0; begin < all.size(); begin += cut) {
      const size_t end = std::min(all.size(), begin + cut);
      const TestTurn turn = world.Submit(
          id, TurnKind::kAppend, Ids(all.begin() + begin, all.begin() + end));
      world.Run();
      ASSERT_TRUE(turn.sink->finished().has_value());
      EXPECT_EQ(turn.sink->finished()->position, static_cast<int64_t>(end));
      EXPECT_TRUE(turn.sink->scored().empty());
    }
    EXPECT_EQ(world.TokensOf(id), all);
    world.ExpectHealthy(id);
  }
  world.ExpectAtRest();
}

TEST_P(SchedulerExactness, ScoresAreTheModelsLogprobsAndChangeNothing) {
  World world(Options());
  for (int start : {0, 1, 2, 30}) {
    const std::string id = absl::StrCat("from", start);
    world.CreateSession(id);
    const Ids context = World::SomeIds(start, 5);
    if (start > 0) world.Submit(id, TurnKind::kAppend, context);
    world.Run();
    for (int length : {1, 2, 16, 17, 70}) {
      const Ids text = World::SomeIds(length, 9);
      const TestTurn turn =
          world.Submit(id, TurnKind::kScore, text,
                       [](Turn& turn) { turn.top_logprobs = 3; });
      world.Run();
      const std::vector<ScoredToken> scored = turn.sink->scored();
      ASSERT_EQ(scored.size(), text.size());
      Ids ids = context;
      for (int i = 0; i < length; ++i) {
        EXPECT_EQ(scored[i].token_id, text[i]);
        if (ids.empty()) {
          EXPECT_FALSE(scored[i].logprob.has_value());
        } else {
          EXPECT_EQ(scored[i].logprob, world.runner->LogProbs(ids)[text[i]]);
          ASSERT_EQ(scored[i].top_logprobs.size(), 3u);
          EXPECT_EQ(scored[i].top_logprobs[0].token_id,
                    world.runner->NextToken(ids));
        }
        ids.push_back(text[i]);
      }
      ASSERT_TRUE(turn.sink->finished().has_value());
      EXPECT_EQ(turn.sink->finished()->position, start);
      EXPECT_EQ(world.TokensOf(id), context);
    }
    world.ExpectHealthy(id);
  }
  world.ExpectAtRest();
}

TEST_P(SchedulerExactness, NamedIdsAreReportedAtEveryPlace) {
  World world(Options());
  const auto named = std::make_shared<const Ids>(Ids{9, 0, 9});
  const auto expect = [&](const std::vector<TokenLogprob>& found,
                          const Ids& before) {
    ASSERT_EQ(found.size(), 4u);
    EXPECT_EQ(found[0].token_id, world.runner->NextToken(before));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(found[i + 1].token_id, (*named)[i]);
      EXPECT_EQ(found[i + 1].logprob,
                world.runner->LogProbs(before)[(*named)[i]]);
    }
  };
  const auto ask = [&](Turn& turn) {
    turn.top_logprobs = 1;
    turn.logprob_ids = named;
    turn.return_scored = true;
  };
  Ids ids = World::SomeIds(20);
  for (const TurnKind kind : {TurnKind::kScore, TurnKind::kAppend}) {
    const TestTurn turn = world.Submit("", kind, ids, ask);
    world.Run();
    const std::vector<ScoredToken> scored = turn.sink->scored();
    ASSERT_EQ(scored.size(), ids.size());
    for (size_t i = 1; i < ids.size(); ++i) {
      expect(scored[i].top_logprobs, Ids(ids.begin(), ids.begin() + i));
    }
  }
  const TestTurn turn = world.Generate("", ids, 6, ask);
  world.Run();
  for (const TokenEvent& token : turn.sink->tokens()) {
    expect(token.top_logprobs, ids);
    ids.push_back(token.token_id);
  }
  EXPECT_EQ(ids.size(), 26u);
  world.ExpectAtRest();
}

TEST_P(SchedulerExactness, OnlyAllowedIdsAreSampled) {
  World world(Options());
  Ids ids = World::SomeIds(5);
  const Ids allowed = {3, 5, 8};
  const TestTurn turn = world.Generate("", ids, 9, [&](Turn& turn) {
    turn.sampling.allowed_token_ids = allowed;
  });
  world.Run();
  for (const TokenEvent& token : turn.sink->tokens()) {
    const std::vector<float> logprobs = world.runner->LogProbs(ids);
    const int32_t best = *std::max_element(
        allowed.begin(), allowed.end(),
        [&](int32_t a, int32_t b) { return logprobs[a] < logprobs[b]; });
    EXPECT_EQ(token.token_id, best);
    EXPECT_EQ(token.logprob, logprobs[best]);
    ids.push_back(token.token_id);
  }
  EXPECT_EQ(ids.size(), 14u);
  world.ExpectAtRest();
}

// What follows `ids`, each token by the rule behind the one before it.
Ids ContinueByKinds(const World& world, Ids ids, int count) {
  const auto kinds = SomeTable(50);
  const size_t begin = ids.size();
  for (int i = 0; i < count; ++i) {
    const KindRule& rule = kinds->After(ids.back());
    Ids banned;
    for (int32_t id = 0; id < 50; ++id) {
      const bool may = HoldsKind(rule.next, kinds->KindOf(id));
      if (rule.restricts != 0 && !may) banned.push_back(id);
    }
    ids.push_back(world.runner->NextToken(ids, banned));
  }
  return {ids.begin() + begin, ids.end()};
}

// On fewer slots than sessions, so that turns leave and come back; a window of
// no ids, so that the last one is there for its kind alone.
TEST_P(SchedulerExactness, EachTokenFollowsTheKindOfTheOneBeforeIt) {
  WorldOptions options = Options();
  options.runner.kinds = SomeTable(50);
  World world(options);
  const auto follow = [](Turn& turn) {
    turn.sampling.follow_kinds = true;
    turn.sampling.penalty_window = 0;
  };
  std::vector<Ids> ids(9);
  for (int s = 0; s < 9; ++s) world.CreateSession(absl::StrCat("s", s));
  bool differs = false;
  for (int round = 0; round < 4; ++round) {
    std::vector<TestTurn> turns;
    std::vector<Ids> expected;
    for (int s = 0; s < 9; ++s) {
      const Ids prompt =
          World::SomeIds((s * 5 + round * 9) % 37 + 1, s + round);
      ids[s] = Concat(ids[s], prompt);
      expected.push_back(ContinueByKinds(world, ids[s], 12));
      differs |= expected.back() != world.runner->Continue(ids[s], 12);
      ids[s] = Concat(ids[s], expected.back());
      turns.push_back(world.Generate(absl::StrCat("s", s), prompt, 12, follow));
      world.Step();
    }
    world.Run();
    for (int s = 0; s < 9; ++s) {
      EXPECT_EQ(turns[s].sink->ids(), expected[s])
          << round << ", session " << s;
    }
  }
  EXPECT_TRUE(differs);
  world.ExpectAtRest();
}

TEST_P(SchedulerExactness,
       KindsAreThoseBehindWhatASessionWasRewoundOrForkedTo) {
  WorldOptions options = Options();
  options.runner.kinds = SomeTable(50);
  World world(options);
  const auto follow = [](Turn& turn) { turn.sampling.follow_kinds = true; };
  world.CreateSession("a");
  const Ids prompt = World::SomeIds(20);
  world.Generate("a", prompt, 8, follow);
  world.Run();
  for (const int64_t position : {25, 22, 20, 3}) {
    const Ids whole = world.TokensOf("a");
    const Ids start(whole.begin(), whole.begin() + position);
    const std::string fork = absl::StrCat("fork", position);
    ASSERT_TRUE(
        world.store
            ->Fork(
                {.session = "a", .new_session_id = fork, .position = position})
            .ok());
    ASSERT_TRUE(
        world.store->Rewind({.session = "a", .position = position}).ok());
    const Ids expected = ContinueByKinds(world, start, 8);
    const TestTurn one = world.Generate("a", {}, 8, follow);
    const TestTurn other = world.Generate(fork, {}, 8, follow);
    world.Run();
    EXPECT_EQ(one.sink->ids(), expected) << position;
    EXPECT_EQ(other.sink->ids(), expected) << position;
  }
  world.ExpectAtRest();
}

TEST_P(SchedulerExactness, AppendReportsItsScoresWhenAsked) {
  World world(Options());
  const Ids text = World::SomeIds(40);
  const TestTurn turn =
      world.Submit("", TurnKind::kAppend, text,
                   [](Turn& turn) { turn.return_scored = true; });
  world.Run();
  const std::vector<ScoredToken> scored = turn.sink->scored();
  ASSERT_EQ(scored.size(), 40u);
  EXPECT_FALSE(scored[0].logprob.has_value());
  for (size_t i = 1; i < 40; ++i) {
    const Ids before(text.begin(), text.begin() + i);
    EXPECT_EQ(scored[i].logprob, world.runner->LogProbs(before)[text[i]]);
  }
  world.ExpectAtRest();
}

TEST_P(SchedulerExactness, OneIdForAnEmptySessionRunsNoRow) {
  World world(Options());
  world.CreateSession("a");
  const TestTurn score = world.Submit("a", TurnKind::kScore, {7});
  world.Run();
  EXPECT_EQ(score.sink->scored().size(), 1u);
  const TestTurn append = world.Submit("a", TurnKind::kAppend, {7});
  world.Run();
  EXPECT_TRUE(append.sink->finished().has_value());
  EXPECT_EQ(world.TokensOf("a"), Ids{7});
  EXPECT_TRUE(world.runner->plans().empty());
  world.ExpectHealthy("a");
  world.ExpectAtRest();
}

TEST_P(SchedulerExactness, EventsCarryTheModelsLogprobsAndAlternatives) {
  World world(Options());
  Ids ids = World::SomeIds(5);
  const TestTurn turn =
      world.Generate("", ids, 6, [](Turn& turn) { turn.top_logprobs = 2; });
  world.Run();
  for (const TokenEvent& token : turn.sink->tokens()) {
    EXPECT_EQ(token.logprob, world.runner->LogProbs(ids)[token.token_id]);
    ASSERT_EQ(token.top_logprobs.size(), 2u);
    EXPECT_EQ(token.top_logprobs[0].token_id, world.runner->NextToken(ids));
    EXPECT_EQ(token.text, "");  // no vocabulary: ids only
    ids.push_back(token.token_id);
  }
  EXPECT_EQ(ids.size(), 11u);
  world.ExpectAtRest();
}

INSTANTIATE_TEST_SUITE_P(Depth, SchedulerExactness,
                         ::testing::Combine(::testing::Values(1, 2),
                                            ::testing::Bool()));

}  // namespace
}  // namespace txl
