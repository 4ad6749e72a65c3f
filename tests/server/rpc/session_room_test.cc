// Sessions that are nearly full: what does not fit is refused before it runs.

#include <gmock/gmock.h>

#include "tests/server/rpc/rpc_world.h"

namespace txl {
namespace {

RpcWorldOptions Room(int64_t tokens) {
  RpcWorldOptions options;
  options.sessions.max_session_tokens = tokens;
  return options;
}

class SessionRoom : public ::testing::Test {
 protected:
  SessionRoom() : world_(Room(20)) { world_.MakeSession("s", {1, 2, 3}); }

  std::string Append(const std::string& request) {
    grpc::ClientContext client;
    v1::AppendTokensResponse response;
    return Outcome(world_.sessions->AppendTokens(
        &client, Proto<v1::AppendTokensRequest>(request), &response));
  }

  RpcWorld world_;
};

TEST_F(SessionRoom, APromptThatDoesNotFitIsOverItsFieldsLimit) {
  EXPECT_EQ(
      Outcome(
          world_.Generate("session_id: 's' text: '12345678901234567'").status),
      "INVALID_ARGUMENT OVER_LIMIT text");
  EXPECT_EQ(Append("session_id: 's' text: '123456789012345678'"),
            "INVALID_ARGUMENT OVER_LIMIT text");
  EXPECT_EQ(
      Append("session_id: 's' tokens { ids: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, "
             "11, 12, 13, 14, 15, 16, 17, 18] }"),
      "INVALID_ARGUMENT OVER_LIMIT tokens");
  EXPECT_EQ(world_.GetSession("s").position(), 3);
  EXPECT_EQ(Append("session_id: 's' text: '12345678901234567'"), "OK");
  EXPECT_EQ(world_.GetSession("s").position(), 20);
}

TEST_F(SessionRoom, AGivenMaxTokensThatDoesNotFitIsRefused) {
  EXPECT_EQ(
      Outcome(
          world_.Generate("session_id: 's' text: '12' stop { max_tokens: 16 }")
              .status),
      "INVALID_ARGUMENT OVER_LIMIT stop.max_tokens");
  EXPECT_EQ(world_.GetSession("s").position(), 3);
  const Stream stream =
      world_.Generate("session_id: 's' text: '12' stop { max_tokens: 15 }");
  EXPECT_EQ(Outcome(stream.status), "OK");
  EXPECT_EQ(world_.GetSession("s").position(), 20);
}

TEST_F(SessionRoom, ADefaultMaxTokensShrinksAndStartedSaysSo) {
  const std::string request = "session_id: 's' text: '12' request_id: 'r'";
  const Stream stream = world_.Generate(request);
  ASSERT_EQ(Outcome(stream.status), "OK");
  EXPECT_EQ(stream.started().stop().max_tokens(), 15);
  EXPECT_EQ(stream.tokens.size(), 15u);
  EXPECT_EQ(world_.GetSession("s").position(), 20);
  const Stream again = world_.Generate(request);
  ASSERT_EQ(Outcome(again.status), "OK");
  EXPECT_EQ(again.started().stop().max_tokens(), 15);
  EXPECT_EQ(again.ids(), stream.ids());
}

TEST_F(SessionRoom, ADefaultThatShrinksBelowMinTokensIsRefused) {
  EXPECT_EQ(
      Outcome(world_
                  .Generate(
                      "session_id: 's' text: '12' sampling { min_tokens: 16 }")
                  .status),
      "INVALID_ARGUMENT FIELD_INVALID sampling.min_tokens");
}

TEST_F(SessionRoom, AFullSessionCanBeScoredAgainstButNotContinued) {
  ASSERT_EQ(Append("session_id: 's' text: '12345678901234567'"), "OK");
  EXPECT_EQ(Outcome(world_.Generate("session_id: 's'").status),
            "INVALID_ARGUMENT OVER_LIMIT session_id");
  grpc::ClientContext client;
  v1::ScoreResponse response;
  EXPECT_EQ(Outcome(world_.generation->Score(
                &client, Proto<v1::ScoreRequest>("session_id: 's' text: 'abc'"),
                &response)),
            "OK");
}

TEST_F(SessionRoom, ATemporarySessionHasTheSameLimit) {
  EXPECT_EQ(
      Outcome(world_.Generate("text: 'a' stop { max_tokens: 20 }").status),
      "INVALID_ARGUMENT OVER_LIMIT stop.max_tokens");
  EXPECT_EQ(
      Outcome(world_.Generate("text: 'a' stop { max_tokens: 19 }").status),
      "OK");
}

}  // namespace
}  // namespace txl
