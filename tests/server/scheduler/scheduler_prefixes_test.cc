// Turns that begin with rows that are there already: they give what they would
// without, and feed less.

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

WorldOptions WithCache(int slots) {
  WorldOptions options;
  options.runner.slots = slots;
  options.scheduler.prefix_cache_bytes = int64_t{1} << 20;
  return options;
}

Ids Join(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Ids TokensOf(const TestTurn& turn) {
  Ids ids;
  for (const TokenEvent& event : turn.sink->tokens()) {
    ids.push_back(event.token_id);
  }
  return ids;
}

// Rows of the input that were run, of the turn that was submitted last.
class Prefixes : public ::testing::Test {
 protected:
  void Make(WorldOptions options) { world_.emplace(std::move(options)); }
  World& world() { return *world_; }

  // Runs a turn to its end; it gives what the model gives.
  int64_t CachedOf(const Ids& input, int tokens = 3,
                   const std::string& tenant = "") {
    const TestTurn turn = world().Generate(
        "", input, tokens,
        [&tenant](Turn& turn) { turn.prefix_tenant = tenant; });
    world().Run();
    return Check(turn, input, tokens);
  }
  int64_t Check(const TestTurn& turn, const Ids& input, int tokens) {
    EXPECT_EQ(TokensOf(turn), world().runner->Continue(input, tokens));
    EXPECT_TRUE(turn.sink->finished().has_value());
    return turn.sink->finished()->cached_tokens;
  }
  std::vector<std::string> CallsSince(size_t first) const {
    std::vector<std::string> calls = world_->runner->calls();
    calls.erase(calls.begin(), calls.begin() + static_cast<ptrdiff_t>(first));
    return calls;
  }

 private:
  std::optional<World> world_;
};

TEST_F(Prefixes, TheSamePromptFeedsItsLastTokenOnly) {
  Make(WithCache(2));
  const Ids prompt = World::SomeIds(24);
  EXPECT_EQ(CachedOf(prompt), 0);
  const size_t before = world().runner->calls().size();
  EXPECT_EQ(CachedOf(prompt), 23);
  // In the slot that the first turn has left: nothing is moved.
  EXPECT_THAT(CallsSince(before), Not(Contains("clear 0")));
  EXPECT_THAT(CallsSince(before), Not(Contains("copy 0 1")));
  world().ExpectAtRest();
}

TEST_F(Prefixes, OffFindsNothing) {
  WorldOptions options = WithCache(2);
  options.scheduler.prefix_cache_bytes = 0;
  Make(std::move(options));
  const Ids prompt = World::SomeIds(24);
  CachedOf(prompt);
  EXPECT_EQ(CachedOf(prompt), 0);
}

TEST_F(Prefixes, APromptThatPartsFeedsWhatDiffers) {
  Make(WithCache(1));
  const Ids preamble = World::SomeIds(20);
  CachedOf(Join(preamble, {1, 2, 3}));
  EXPECT_EQ(CachedOf(Join(preamble, {4, 5, 6})), 20);
  EXPECT_EQ(CachedOf(Join(preamble, {1, 2, 3})), 20);
}

TEST_F(Prefixes, AConversationSentWholeFeedsItsNewText) {
  Make(WithCache(1));
  Ids prompt = World::SomeIds(18);
  CachedOf(prompt, 4);
  prompt = Join(world().runner->Continue(prompt, 4), {7, 8});
  prompt = Join(World::SomeIds(18), prompt);
  // All but the last sampled token had been fed, and the new ones.
  EXPECT_EQ(CachedOf(prompt), 21);
}

TEST_F(Prefixes, AnotherTenantsPromptIsNotFound) {
  Make(WithCache(2));
  const Ids prompt = World::SomeIds(24);
  CachedOf(prompt, 3, "a");
  EXPECT_EQ(CachedOf(prompt, 3, "b"), 0);
  EXPECT_EQ(CachedOf(prompt, 3, "a"), 23);
}

TEST_F(Prefixes, AnImageServesWhereTheSlotIsTaken) {
  for (const bool derives : {false, true}) {
    WorldOptions options = WithCache(1);
    options.runner.derives = derives;
    Make(std::move(options));
    const Ids prompt = World::SomeIds(24);
    CachedOf(prompt);
    CachedOf(World::SomeIds(24, 9));
    const size_t before = world().runner->calls().size();
    EXPECT_EQ(CachedOf(Join(prompt, {1})), 24);
    EXPECT_THAT(CallsSince(before), Contains("import 0 @26"));
    EXPECT_EQ(CachedOf(prompt), 23);
    world().ExpectAtRest();
  }
}

TEST_F(Prefixes, TurnsThatComeTogetherWaitForOne) {
  Make(WithCache(4));
  const Ids preamble = World::SomeIds(24);
  std::vector<TestTurn> turns;
  for (int i = 0; i < 4; ++i) {
    turns.push_back(world().Generate("", Join(preamble, {i, i + 1}), 3));
  }
  world().Run();
  EXPECT_EQ(Check(turns[0], Join(preamble, {0, 1}), 3), 0);
  for (int i = 1; i < 4; ++i) {
    EXPECT_EQ(Check(turns[i], Join(preamble, {i, i + 1}), 3), 24);
  }
  world().ExpectAtRest();
}

TEST_F(Prefixes, WhoWaitsFeedsItsOwnWhereTheFirstIsCancelled) {
  Make(WithCache(4));
  const Ids prompt = World::SomeIds(30);
  WorldOptions options = WithCache(4);
  const TestTurn first = world().Generate("", prompt, 3);
  const TestTurn second = world().Generate("", prompt, 3);
  const TestTurn third = world().Generate("", prompt, 3);
  world().Step();
  first.cancel->Cancel(CancelToken::Why::kCancelled);
  world().Run();
  EXPECT_EQ(Check(second, prompt, 3), 0);
  EXPECT_EQ(Check(third, prompt, 3), 29);
  world().ExpectAtRest();
}

TEST_F(Prefixes, ALongPromptServesItsFirstPart) {
  Make(WithCache(1));
  const Ids preamble = World::SomeIds(32);  // M
  CachedOf(Join(preamble, World::SomeIds(20, 1)));
  CachedOf(World::SomeIds(24, 9));
  EXPECT_EQ(CachedOf(Join(preamble, World::SomeIds(20, 2))), 32);
}

TEST_F(Prefixes, TheSameLongPromptFeedsItsLastTokenOnly) {
  Make(WithCache(1));
  const Ids prompt = World::SomeIds(80);
  // Its rows in the slot are overwritten before the turn ends.
  CachedOf(prompt, 60);
  EXPECT_EQ(CachedOf(prompt, 60), 79);
}

TEST_F(Prefixes, LongPromptsThatPartServeTheThird) {
  Make(WithCache(1));
  const Ids preamble = World::SomeIds(60);
  CachedOf(Join(preamble, World::SomeIds(20, 1)));
  CachedOf(Join(preamble, World::SomeIds(20, 2)));
  EXPECT_EQ(CachedOf(Join(preamble, World::SomeIds(20, 3))), 60);
}

// Scores of ids [1, n) alone.
std::vector<float> ScoresOf(const TestTurn& turn) {
  std::vector<float> scores;
  for (const ScoredToken& token : turn.sink->scored()) {
    scores.push_back(token.logprob.value_or(0));
    for (const TokenLogprob& top : token.top_logprobs) {
      scores.push_back(static_cast<float>(top.token_id));
      scores.push_back(top.logprob);
    }
  }
  return scores;
}

TEST_F(Prefixes, ScoresComeFromTheCacheToo) {
  const Ids context = World::SomeIds(24);
  const auto score = [this](const Ids& ids, int top) {
    const TestTurn turn =
        world().Submit("", TurnKind::kScore, ids,
                       [top](Turn& turn) { turn.top_logprobs = top; });
    world().Run();
    return turn;
  };
  std::vector<std::vector<float>> expected;
  WorldOptions off = WithCache(1);
  off.scheduler.prefix_cache_bytes = 0;
  Make(off);
  for (int i = 0; i < 4; ++i) {
    expected.push_back(ScoresOf(score(Join(context, {i, 2 * i, 5}), 2)));
  }
  Make(WithCache(1));
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 4; ++i) {
      const TestTurn turn = score(Join(context, {i, 2 * i, 5}), 2);
      EXPECT_EQ(ScoresOf(turn), expected[i]);
      const int64_t cached = turn.sink->finished()->cached_tokens;
      EXPECT_EQ(cached, round == 0 && i == 0 ? 0 : 24 - (i > 0 || round > 0));
    }
    CachedOf(World::SomeIds(24, 9));
  }
  // More alternatives than were kept are fed again.
  EXPECT_EQ(score(Join(context, {0, 0, 5}), 3).sink->finished()->cached_tokens,
            0);
}

TEST_F(Prefixes, ScoresOfALongPromptServeOneThatPartsFromIt) {
  const Ids context = World::SomeIds(60);
  const auto score = [this](const Ids& ids) {
    const TestTurn turn = world().Submit("", TurnKind::kScore, ids);
    world().Run();
    return turn;
  };
  WorldOptions off = WithCache(1);
  off.scheduler.prefix_cache_bytes = 0;
  Make(off);
  const std::vector<float> expected =
      ScoresOf(score(Join(context, World::SomeIds(20, 3))));
  Make(WithCache(1));
  score(Join(context, World::SomeIds(20, 1)));
  score(Join(context, World::SomeIds(20, 2)));
  const TestTurn third = score(Join(context, World::SomeIds(20, 3)));
  EXPECT_EQ(third.sink->finished()->cached_tokens, 59);
  EXPECT_EQ(ScoresOf(third), expected);
}

// What a harness for multiple choice does over HTTP: a session is scored, goes
// on by a token, and is deleted.
TEST_F(Prefixes, ADeletedSessionsScoresStay) {
  Make(WithCache(2));
  const Ids context = World::SomeIds(24);
  int64_t cached = 0;
  for (int i = 0; i < 4; ++i) {
    const std::string session = "s" + std::to_string(i);
    world().CreateSession(session);
    const TestTurn append =
        world().Submit(session, TurnKind::kAppend, Join(context, {i, 2}),
                       [](Turn& turn) { turn.return_scored = true; });
    world().Run();
    cached += append.sink->finished()->cached_tokens;
    EXPECT_EQ(append.sink->scored().size(), context.size() + 2);
    world().Generate(session, {}, 1);
    world().Run();
    ASSERT_TRUE(
        world().store->Delete(SessionName::OfDefaultTenant(session)).ok());
  }
  EXPECT_EQ(cached, 3 * 23);
}

TEST_F(Prefixes, ATenantThatIsRemovedLeavesNothing) {
  Make(WithCache(1));
  const Ids prompt = World::SomeIds(24);
  CachedOf(prompt, 3, "a");
  CachedOf(World::SomeIds(24, 9), 3, "a");  // the first is an image now
  world().scheduler->ForgetPrefixes("a");
  EXPECT_EQ(CachedOf(prompt, 3, "a"), 0);
}

// Turns of a few tenants, with prompts that part from each other at random,
// some cancelled, some on sessions that go on, are forked or rewound, some on a
// device that fails.
class RandomPrefixes : public Prefixes {
 protected:
  Ids SomePrompt(std::mt19937& random) {
    const auto pick = [&random](int count) {
      return static_cast<int>(random() % static_cast<unsigned>(count));
    };
    Ids prompt = World::SomeIds(8 + pick(60), pick(2));
    if (pick(3) > 0) prompt.resize(std::min<size_t>(prompt.size(), 20));
    return Join(prompt, World::SomeIds(1 + pick(12), pick(3)));
  }
};

TEST_F(RandomPrefixes, EveryTurnGivesWhatItGivesAlone) {
  int64_t cached = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&random](int count) {
      return static_cast<int>(random() % static_cast<unsigned>(count));
    };
    WorldOptions options = WithCache(1 + pick(4));
    options.runner.derives = pick(2) == 0;
    options.runner.imports_aside = pick(2) == 0;
    options.scheduler.prompt_rows_per_step = 4 + pick(28);
    options.scheduler.prefix_cache_bytes = int64_t{1} << (11 + pick(6));
    Make(std::move(options));
    for (const char* id : {"s0", "s1", "s2"}) world().CreateSession(id);
    struct Sent {
      TestTurn turn;
      TurnKind kind;
      Ids before, input;
    };
    std::vector<Sent> sent;
    for (int i = 0; i < 40; ++i) {
      Sent next;
      next.kind = pick(4) == 0 ? TurnKind::kScore : TurnKind::kGenerate;
      next.input = SomePrompt(random);
      std::string session;
      if (pick(4) == 0) {
        session = "s" + std::to_string(pick(3));
        if (pick(3) == 0) {
          const auto all = world().TokensOf(session);
          if (!all.empty()) {
            world()
                .store
                ->Rewind({.session = SessionName::OfDefaultTenant(session),
                          .position = pick(static_cast<int>(all.size()))})
                .IgnoreError();
          }
        }
        next.before = world().TokensOf(session);
      }
      const std::string tenant = pick(5) == 0 ? "other" : "";
      if (pick(40) == 0) world().runner->FailRow(pick(2), pick(30));
      next.turn =
          world().Submit(session, next.kind, next.input, [&](Turn& turn) {
            turn.prefix_tenant = tenant;
            turn.stop.max_tokens = 1 + i % 6;
            turn.priority = i % 7 == 0 ? 1 : 0;
          });
      sent.push_back(next);
      for (int steps = pick(6); steps > 0; --steps) world().Step();
      if (pick(12) == 0) {
        next.turn.cancel->Cancel(CancelToken::Why::kCancelled);
      }
    }
    world().Run();
    for (const Sent& one : sent) {
      if (!one.turn.submitted.ok()) continue;
      const auto& finished = one.turn.sink->finished();
      if (!finished.has_value()) continue;
      cached += finished->cached_tokens;
      const Ids ids = Join(one.before, one.input);
      if (one.kind == TurnKind::kGenerate) {
        const Ids tokens = TokensOf(one.turn);
        ASSERT_EQ(tokens, world().runner->Continue(
                              ids, static_cast<int>(tokens.size())))
            << "seed " << seed;
        continue;
      }
      const auto scored = one.turn.sink->scored();
      ASSERT_EQ(scored.size(), one.input.size());
      for (size_t i = 0; i < scored.size(); ++i) {
        const size_t at = one.before.size() + i;
        if (at == 0) continue;
        const std::vector<float> logprobs =
            world().runner->LogProbs(absl::MakeConstSpan(ids).first(at));
        ASSERT_EQ(scored[i].logprob, logprobs[ids[at]])
            << "seed " << seed << ", id " << i;
      }
    }
    ASSERT_THAT(world().runner->violations(), IsEmpty()) << "seed " << seed;
    world().ExpectAtRest();
  }
  EXPECT_GT(cached, 20'000);
}

}  // namespace
}  // namespace txl
