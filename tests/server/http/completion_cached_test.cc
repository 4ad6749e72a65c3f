// Completions whose prompt begins like an earlier one.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/server/http/http_world.h"

namespace txl {
namespace {

using Json = nlohmann::json;

constexpr int64_t kShots = 300;

class CachedCompletions : public ::testing::Test {
 protected:
  static HttpWorldOptions Options(int64_t cache_bytes) {
    HttpWorldOptions options;
    options.rpc.scheduler.prefix_cache_bytes = cache_bytes;
    return options;
  }
  // Shots of their own, and a question that differs in its first letter.
  static std::string Prompt(char shots, char question) {
    return std::string(kShots, shots) + question + "?";
  }
  static int64_t CachedOf(const Json& usage) {
    return usage["prompt_tokens_details"]["cached_tokens"];
  }
  // Cached tokens of a first and of a second question behind the same shots.
  static std::vector<int64_t> Ask(HttpWorld& world, char shots, Json more) {
    std::vector<int64_t> cached;
    for (const char question : {'x', 'y'}) {
      more["prompt"] = Prompt(shots, question);
      const HttpAnswer answer = world.Complete(more);
      EXPECT_EQ(answer.outcome(), "200");
      const Json usage = answer.json()["usage"];
      EXPECT_EQ(usage["prompt_tokens"], kShots + 2);
      cached.push_back(CachedOf(usage));
    }
    return cached;
  }
  // The second question's beginning was known, the first one's was not.
  static void ExpectKnown(const std::vector<int64_t>& cached) {
    EXPECT_EQ(cached[0], 0);
    EXPECT_GT(cached[1], 0);
    EXPECT_LE(cached[1], kShots);
  }

  HttpWorld world_{Options(1 << 24)};
};

TEST_F(CachedCompletions, SayHowMuchOfThePromptWasKnown) {
  ExpectKnown(Ask(world_, 'a', {{"max_tokens", 2}}));
}

TEST_F(CachedCompletions, CountAPromptOnceHoweverManyAreDrawn) {
  ExpectKnown(Ask(world_, 'b', {{"max_tokens", 2}, {"n", 3}}));
}

TEST_F(CachedCompletions, CountTheEchoedPromptOfAScoredAnswer) {
  ExpectKnown(
      Ask(world_, 'c', {{"max_tokens", 1}, {"echo", true}, {"logprobs", 1}}));
  ExpectKnown(
      Ask(world_, 'd', {{"max_tokens", 0}, {"echo", true}, {"logprobs", 1}}));
}

TEST_F(CachedCompletions, HaveTheSumOfAListOfPrompts) {
  const int64_t one = Ask(world_, 'e', {{"max_tokens", 1}})[1];
  const Json usage =
      world_
          .Complete({{"prompt", {Prompt('e', 'p'), Prompt('e', 'q')}},
                     {"max_tokens", 1}})
          .json()["usage"];
  EXPECT_EQ(usage["prompt_tokens"], 2 * (kShots + 2));
  EXPECT_GE(CachedOf(usage), 2 * one);
}

TEST_F(CachedCompletions, SayItInTheLastEventsOfAStream) {
  Ask(world_, 'f', {{"max_tokens", 1}});
  const std::vector<Json> chunks =
      world_
          .Complete(
              {{"prompt", Prompt('f', 'z')},
               {"max_tokens", 2},
               {"stream", true},
               {"stream_options",
                {{"include_usage", true}, {"continuous_usage_stats", true}}}})
          .chunks();
  EXPECT_EQ(CachedOf(chunks.front()["usage"]), 0) << "not known yet";
  EXPECT_GT(CachedOf(chunks.back()["usage"]), 0);
}

TEST_F(CachedCompletions, AreTheSameAnswersWithAndWithoutTheCache) {
  HttpWorld without{Options(0)};
  for (const char question : {'x', 'y'}) {
    const Json request = {{"prompt", Prompt('g', question)},
                          {"max_tokens", 5},
                          {"seed", 7},
                          {"echo", true},
                          {"logprobs", 3}};
    const Json plain = without.Complete(request).json();
    EXPECT_EQ(world_.Complete(request).json()["choices"], plain["choices"]);
    EXPECT_EQ(CachedOf(plain["usage"]), 0);
  }
}

}  // namespace
}  // namespace txl
