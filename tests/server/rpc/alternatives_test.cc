// ScoreAlternatives as clients see it.

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/server/rpc/rpc_world.h"

namespace txl {
namespace {

grpc::Status ScoreAll(RpcWorld& world, const std::string& request,
                      v1::ScoreAlternativesResponse* response) {
  grpc::ClientContext client;
  return world.generation->ScoreAlternatives(
      &client, Proto<v1::ScoreAlternativesRequest>(request), response);
}

v1::ScoreResponse ScoreOne(RpcWorld& world, const std::string& request) {
  grpc::ClientContext client;
  v1::ScoreResponse response;
  EXPECT_EQ(Outcome(world.generation->Score(
                &client, Proto<v1::ScoreRequest>(request), &response)),
            "OK");
  return response;
}

TEST(ScoreAlternatives, EachIsWhatScoreSaysOfItAlone) {
  RpcWorld world;
  world.MakeSession("s", {'h', 'e', 'l', 'l', 0xc3});
  for (const std::string session : {"", "session_id: 's' "}) {
    for (const std::string context : {"", "to be "}) {
      std::string request = session + "return_tokens: true ";
      if (!context.empty()) absl::StrAppend(&request, "text: '", context, "' ");
      const std::string texts[] = {"or not", "or", "x", "or no", "or not"};
      for (const std::string& text : texts) {
        absl::StrAppend(&request, "alternatives { text: '", text, "' } ");
      }
      v1::ScoreAlternativesResponse response;
      ASSERT_EQ(Outcome(ScoreAll(world, request, &response)), "OK");
      ASSERT_EQ(response.scores_size(), 5);
      for (int i = 0; i < 5; ++i) {
        const v1::AlternativeScore& score = response.scores(i);
        ASSERT_EQ(score.token_count(), static_cast<int64_t>(texts[i].size()));
        const v1::ScoreResponse alone = ScoreOne(
            world, absl::StrCat(session, "text: '", context, texts[i], "'"));
        double sum = 0;
        for (int j = 0; j < score.tokens_size(); ++j) {
          const v1::ScoredToken& token =
              alone.tokens(static_cast<int>(context.size()) + j);
          EXPECT_EQ(score.tokens(j).SerializeAsString(),
                    token.SerializeAsString());
          sum += token.logprob();
        }
        EXPECT_EQ(score.sum_logprob(), sum);
      }
    }
  }
  EXPECT_EQ(world.GetSession("s").position(), 5);
}

TEST(ScoreAlternatives, ShowsTokensOnlyWhenAsked) {
  RpcWorld world;
  v1::ScoreAlternativesResponse response;
  ASSERT_EQ(Outcome(ScoreAll(world, "alternatives { text: 'abc' }", &response)),
            "OK");
  EXPECT_EQ(response.scores(0).tokens_size(), 0);
  EXPECT_EQ(response.scores(0).token_count(), 3);
  EXPECT_LT(response.scores(0).sum_logprob(), 0);
  EXPECT_EQ(response.usage().ShortDebugString(), "prompt_tokens: 3");
}

TEST(ScoreAlternatives, OfWhatIsNotThereOrBusyIsRefused) {
  RpcWorld world;
  v1::ScoreAlternativesResponse response;
  const std::string request = "session_id: 's' alternatives { text: 'a' }";
  EXPECT_EQ(Outcome(ScoreAll(world, request, &response)),
            "NOT_FOUND SESSION_UNKNOWN");
  world.MakeSession("s", {'h'});
  const auto lease = world.store->Acquire("s");
  ASSERT_TRUE(lease.ok());
  EXPECT_EQ(Outcome(ScoreAll(world, request, &response)),
            "ABORTED SESSION_BUSY");
}

}  // namespace
}  // namespace txl
