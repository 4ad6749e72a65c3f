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
using ::testing::ElementsAre;
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

TEST_F(Prefixes, APromptThatItsTokensOverwroteServesTheSamePrompt) {
  Make(WithCache(1));
  const Ids prompt = World::SomeIds(24);
  CachedOf(prompt, 60);
  EXPECT_EQ(CachedOf(prompt, 60), 23);
  EXPECT_EQ(CachedOf(Join(World::SomeIds(20), {1, 2}), 3), 20);
}

TEST_F(Prefixes, LongPromptsThatPartServeTheThird) {
  Make(WithCache(1));
  const Ids preamble = World::SomeIds(60);
  CachedOf(Join(preamble, World::SomeIds(20, 1)));
  CachedOf(Join(preamble, World::SomeIds(20, 2)));
  EXPECT_EQ(CachedOf(Join(preamble, World::SomeIds(20, 3))), 60);
}

// The first one's rows of what all share are copied to the host, and none of
// what is its own.
TEST_F(Prefixes, LongPromptsThatComeTogetherMakeOneImageWhereTheyPart) {
  Make(WithCache(3));
  const Ids preamble = World::SomeIds(60);
  const auto prompt = [&preamble](int i) {
    return Join(preamble, {i, i + 1, i + 2});
  };
  std::vector<TestTurn> turns;
  for (int i = 0; i < 3; ++i) {
    turns.push_back(world().Generate("", prompt(i), 3));
  }
  world().Run();
  EXPECT_EQ(Check(turns[0], prompt(0), 3), 0);
  EXPECT_EQ(Check(turns[1], prompt(1), 3), 60);
  EXPECT_EQ(Check(turns[2], prompt(2), 3), 60);
  std::vector<std::string> exports = CallsSince(0);
  std::erase_if(exports, [](const std::string& call) {
    return !call.starts_with("export");
  });
  EXPECT_THAT(exports, ElementsAre("export 0 @32", "export 0 @60"));
  for (int i = 0; i < 3; ++i) CachedOf(World::SomeIds(24, 9 + i));
  EXPECT_EQ(CachedOf(prompt(3)), 60);
  world().ExpectAtRest();
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

// What a slot's former prompt overwrote stays lost when a turn takes it over.
TEST_F(Prefixes, WhoWaitsGetsNoRowsThatTheSlotLostBeforeItsLeader) {
  Make(WithCache(2));
  const Ids longest = World::SomeIds(80);  // the ring holds rows 32 to 79
  CachedOf(longest, 1);
  const auto first = [&longest](int count) {
    return Ids(longest.begin(), longest.begin() + count);
  };
  const Ids leading = Join(first(66), World::SomeIds(4, 1));
  const Ids waiting = Join(first(58), World::SomeIds(4, 2));
  const TestTurn leader = world().Generate("", leading, 3);
  const TestTurn follower = world().Generate("", waiting, 3);
  world().Run();
  EXPECT_EQ(Check(leader, leading, 3), 66);
  Check(follower, waiting, 3);
  world().ExpectAtRest();
}

// The session's rows begin at 7, where it came back as an image of 32. A turn
// that cannot take its slot changes nothing of that.
TEST_F(Prefixes, ASlotThatATurnCouldNotTakeServesNoRowsThatItDoesNotHave) {
  Make(WithCache(1));
  const Ids text = World::SomeIds(40);
  world().CreateSession("s");
  world().Submit("s", TurnKind::kAppend, text);
  world().Run();
  CachedOf({1, 2}, 3, "another");
  world().Generate("s", {3}, 1);
  world().Run();
  world().runner->FailNextExport(absl::InternalError("lost device"));
  const TestTurn failed = world().Generate("", {1, 2}, 3);
  world().Run();
  EXPECT_EQ(Outcome(failed.sink->failed()), "INTERNAL STEP_FAILED");
  world().Generate("s", {4}, 1);
  world().Run();
  ASSERT_TRUE(world().store->Delete(SessionName::OfDefaultTenant("s")).ok());
  CachedOf(Join(Ids(text.begin(), text.begin() + 30), {5}));
  world().ExpectAtRest();
}

// Behind a long alternative the session's slot is cleared and fed again.
TEST_F(Prefixes, ASlotWhoseAlternativesClearItIsNotCopied) {
  const Ids text = World::SomeIds(16);
  for (int steps = 1; steps < 16; ++steps) {
    WorldOptions options = WithCache(2);
    options.runner.spare_rows = 8;
    options.scheduler.prompt_rows_per_step = 4;
    options.scheduler.least_prefix_rows = 4;
    Make(std::move(options));
    world().CreateSession("s");
    world().Submit("s", TurnKind::kAppend, text);
    world().Run();
    const TestTurn scored =
        world().Submit("s", TurnKind::kAlternatives, {}, [](Turn& turn) {
          turn.alternatives = {World::SomeIds(10, 1), {49, 48, 47}};
        });
    for (int i = 0; i < steps; ++i) world().Step();
    const Ids prompt = Join(text, {1, 2, 3});
    const TestTurn turn = world().Generate("", prompt, 3);
    world().Run();
    Check(turn, prompt, 3);
    EXPECT_TRUE(scored.sink->finished().has_value());
    world().ExpectAtRest();
  }
}

// Turns of a few tenants, with prompts that part from each other at random,
// some cancelled, some on sessions that go on, are forked or rewound, some on a
// device that fails.
class RandomPrefixes : public Prefixes {
 protected:
  struct Sent {
    int number = 0;
    TurnKind kind = TurnKind::kGenerate;
    Ids before = {};
    Ids input = {};
    TestTurn turn = {};
  };

  int Pick(int count) {
    return static_cast<int>(random_() % static_cast<unsigned>(count));
  }
  void MakeAnother(unsigned seed) {
    random_.seed(seed);
    WorldOptions options = WithCache(1 + Pick(4));
    options.runner.derives = Pick(2) == 0;
    options.runner.imports_aside = Pick(2) == 0;
    options.runner.verifies_guesses = Pick(2) == 0;
    options.runner.spare_rows = 8 + Pick(12);
    options.scheduler.prompt_rows_per_step = 4 + Pick(28);
    options.scheduler.prefix_cache_bytes = int64_t{1} << (11 + Pick(6));
    Make(std::move(options));
    for (const char* id : {"s0", "s1", "s2"}) world().CreateSession(id);
  }
  Sent SendAnother(int number) {
    constexpr TurnKind kKinds[] = {TurnKind::kScore, TurnKind::kAlternatives,
                                   TurnKind::kGenerate, TurnKind::kGenerate};
    Sent sent{.number = number, .kind = kKinds[Pick(4)], .input = SomePrompt()};
    const std::string session = Pick(4) == 0 ? SomeSession() : "";
    if (!session.empty()) sent.before = world().TokensOf(session);
    if (Pick(40) == 0) world().runner->FailRow(Pick(2), Pick(30));
    const std::string tenant = Pick(5) == 0 ? "other" : "";
    sent.turn = world().Submit(session, sent.kind, sent.input, [&](Turn& turn) {
      turn.prefix_tenant = tenant;
      turn.stop.max_tokens = 1 + number % 6;
      if (turn.kind == TurnKind::kAlternatives) {
        turn.alternatives = SomeAlternatives(number);
      }
      turn.priority = number % 7 == 0 ? 1 : 0;
    });
    for (int steps = Pick(6); steps > 0; --steps) world().Step();
    if (Pick(12) == 0) sent.turn.cancel->Cancel(CancelToken::Why::kCancelled);
    return sent;
  }
  // Its tokens or scores are the model's. Tokens that were cached.
  int64_t CheckOne(const Sent& sent) {
    const auto& finished = sent.turn.sink->finished();
    if (!sent.turn.submitted.ok() || !finished.has_value()) return 0;
    const Ids ids = Join(sent.before, sent.input);
    if (sent.kind == TurnKind::kGenerate) {
      const Ids tokens = TokensOf(sent.turn);
      EXPECT_EQ(tokens,
                world().runner->Continue(ids, static_cast<int>(tokens.size())));
    } else if (sent.kind == TurnKind::kAlternatives) {
      ExpectAlternatives(sent.turn.sink->scored(), ids, sent.number);
    } else {
      ExpectInput(sent.turn.sink->scored(), sent.before.size(), ids);
    }
    return finished->cached_tokens;
  }

 private:
  Ids SomePrompt() {
    Ids prompt = World::SomeIds(8 + Pick(60), Pick(2));
    if (Pick(3) > 0) prompt.resize(std::min<size_t>(prompt.size(), 20));
    return Join(prompt, World::SomeIds(1 + Pick(12), Pick(3)));
  }
  // Maybe rewound.
  std::string SomeSession() {
    const std::string session = "s" + std::to_string(Pick(3));
    const Ids all = world().TokensOf(session);
    if (Pick(3) == 0 && !all.empty()) {
      world()
          .store
          ->Rewind({.session = SessionName::OfDefaultTenant(session),
                    .position = Pick(static_cast<int>(all.size()))})
          .IgnoreError();
    }
    return session;
  }
  static std::vector<Ids> SomeAlternatives(int number) {
    std::vector<Ids> all;
    for (int i = 0; i < 1 + number % 4; ++i) {
      all.push_back(World::SomeIds(1 + (number * 7 + i * 5) % 40, i));
    }
    return all;
  }
  void ExpectAlternatives(const std::vector<ScoredToken>& scored,
                          const Ids& ids, int number) {
    size_t at = 0;
    for (const Ids& alternative : SomeAlternatives(number)) {
      Ids before = ids;
      for (const int32_t id : alternative) {
        ASSERT_LT(at, scored.size());
        ASSERT_EQ(scored[at++].logprob, world().runner->LogProbs(before)[id]);
        before.push_back(id);
      }
    }
  }
  void ExpectInput(const std::vector<ScoredToken>& scored, size_t first,
                   const Ids& ids) {
    ASSERT_EQ(scored.size(), ids.size() - first);
    for (size_t at = std::max<size_t>(first, 1); at < ids.size(); ++at) {
      const std::vector<float> logprobs =
          world().runner->LogProbs(absl::MakeConstSpan(ids).first(at));
      ASSERT_EQ(scored[at - first].logprob, logprobs[ids[at]]) << "id " << at;
    }
  }

  std::mt19937 random_;
};

TEST_F(RandomPrefixes, EveryTurnGivesWhatItGivesAlone) {
  int64_t cached = 0;
  for (unsigned seed = 0; seed < 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    MakeAnother(seed);
    std::vector<Sent> sent;
    for (int i = 0; i < 40; ++i) sent.push_back(SendAnother(i));
    world().Run();
    for (const Sent& one : sent) cached += CheckOne(one);
    EXPECT_THAT(world().runner->violations(), IsEmpty());
    world().ExpectAtRest();
  }
  EXPECT_GT(cached, 15'000);
}

}  // namespace
}  // namespace txl
