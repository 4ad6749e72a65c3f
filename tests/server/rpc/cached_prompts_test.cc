// What every method says of a prompt that begins like an earlier one.

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/rpc/rpc_world.h"

namespace txl {
namespace {

constexpr int64_t kKnown = 300;

class CachedPrompts : public ::testing::Test {
 protected:
  static RpcWorldOptions Options() {
    RpcWorldOptions options;
    options.scheduler.prefix_cache_bytes = 1 << 24;
    TenantLimits limits;
    limits.tokens_in_per_minute = 1'000'000;
    options.tenants = {{"default", limits}};
    return options;
  }
  // The field `text` of a prompt: a beginning of its own, then a question.
  static std::string Text(char beginning, char question) {
    return absl::StrCat("text: '", std::string(kKnown, beginning),
                        std::string(1, question), "?' ");
  }
  v1::Usage Generate(const std::string& request) {
    const Stream stream = world_.Generate(
        request + "stop { max_tokens: 2 } sampling { seed: 1 }");
    EXPECT_EQ(Outcome(stream.status), "OK");
    return stream.finished().usage();
  }
  v1::Usage Score(const std::string& request) {
    grpc::ClientContext client;
    v1::ScoreResponse response;
    EXPECT_EQ(Outcome(world_.generation->Score(
                  &client, Proto<v1::ScoreRequest>(request), &response)),
              "OK");
    return response.usage();
  }
  v1::Usage Append(const std::string& request) {
    grpc::ClientContext client;
    v1::AppendTokensResponse response;
    EXPECT_EQ(Outcome(world_.sessions->AppendTokens(
                  &client, Proto<v1::AppendTokensRequest>(request), &response)),
              "OK");
    return response.usage();
  }
  v1::Usage Alternatives(const std::string& request) {
    grpc::ClientContext client;
    v1::ScoreAlternativesResponse response;
    EXPECT_EQ(Outcome(world_.generation->ScoreAlternatives(
                  &client,
                  Proto<v1::ScoreAlternativesRequest>(
                      request + "alternatives { text: 'ab' }"),
                  &response)),
              "OK");
    return response.usage();
  }
  // Of two calls, in their order: a list is evaluated from left to right.
  static void ExpectKnown(const std::vector<v1::Usage>& calls) {
    const v1::Usage& first = calls[0];
    const v1::Usage& second = calls[1];
    EXPECT_EQ(first.cached_tokens(), 0);
    EXPECT_GT(second.cached_tokens(), 0);
    EXPECT_LE(second.cached_tokens(), kKnown);
    EXPECT_GE(second.prompt_tokens(), kKnown + 2);
    EXPECT_EQ(second.rebuilt_tokens(), 0);
  }

  RpcWorld world_{Options()};
};

TEST_F(CachedPrompts, AreCountedByGenerate) {
  ExpectKnown({Generate(Text('a', 'x')), Generate(Text('a', 'y'))});
}

TEST_F(CachedPrompts, AreCountedByScore) {
  ExpectKnown({Score(Text('b', 'x')), Score(Text('b', 'y'))});
}

TEST_F(CachedPrompts, AreCountedByAppendTokensToAnEmptySession) {
  world_.MakeSession("s");
  world_.MakeSession("t");
  ExpectKnown({Append(Text('c', 'x') + "session_id: 's'"),
               Append(Text('c', 'y') + "session_id: 't'")});
  EXPECT_EQ(Append(Text('c', 'z') + "session_id: 't'").cached_tokens(), 0)
      << "the session goes on with its own text";
}

TEST_F(CachedPrompts, AreCountedByScoreAlternatives) {
  ExpectKnown({Alternatives(Text('d', 'x')), Alternatives(Text('d', 'y'))});
}

TEST_F(CachedPrompts, OfAReplayedTurnAreThoseOfTheTurn) {
  world_.MakeSession("s");
  Generate(Text('e', 'x'));
  const std::string named = Text('e', 'y') + "session_id: 's' request_id: 'r' ";
  const v1::Usage turn = Generate(named);
  EXPECT_GT(turn.cached_tokens(), 0);
  EXPECT_EQ(Generate(named).SerializeAsString(), turn.SerializeAsString());
}

TEST_F(CachedPrompts, AreInTheLogAndNotInTheQuota) {
  const auto taken = [this] {
    return *world_.tenants->Find("default", world_.context.clock->Monotonic())
                ->Use(world_.context.clock->Monotonic())
                .tokens_in;
  };
  Score(Text('f', 'x'));
  EXPECT_TRUE(world_.Logged("\"cached_tokens\":0,"));
  const int64_t before = taken();
  const int64_t cached = Score(Text('f', 'y')).cached_tokens();
  EXPECT_TRUE(world_.Logged(absl::StrCat("\"cached_tokens\":", cached, ",")));
  // The bucket refills meanwhile.
  EXPECT_LE(taken(), before + kKnown + 2 - cached);
}

}  // namespace
}  // namespace txl
