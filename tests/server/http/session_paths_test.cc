// /v1/sessions and below, beside the same sessions over gRPC.

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "tests/server/http/http_world.h"

namespace txl {
namespace {

using ::testing::SizeIs;
using Ids = std::vector<int32_t>;
using Json = nlohmann::json;

TEST(SessionPaths, ASessionIsMadeOnce) {
  HttpWorld world;
  const HttpAnswer made =
      world.Post("/v1/sessions", {{"session_id", "s"}, {"ttl", 3600}});
  ASSERT_EQ(made.outcome(), "200");
  EXPECT_EQ(made.header("x-txl-session"), "s");
  EXPECT_EQ(made.json()["session_id"], "s");
  EXPECT_EQ(made.json()["position"], 0);
  EXPECT_EQ(made.json()["ttl"], "3600s");
  EXPECT_EQ(made.json()["state"], "SESSION_STATE_IDLE");
  const HttpAnswer again = world.Post("/v1/sessions", {{"session_id", "s"}});
  EXPECT_EQ(again.outcome(), "409 SESSION_EXISTS");
  EXPECT_EQ(again.header("x-should-retry"), "false");
  EXPECT_EQ(world.rpc.GetSession("s").ttl().seconds(), 3600);
}

TEST(SessionPaths, ASessionWithoutANameGetsOne) {
  HttpWorld world;
  const std::string id =
      world.Post("/v1/sessions", Json::object()).json()["session_id"];
  EXPECT_THAT(id, SizeIs(32));
  EXPECT_EQ(world.rpc.GetSession(id).position(), 0);
}

TEST(SessionPaths, AppendFeedsTextOrIds) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  const HttpAnswer text =
      world.Post("/v1/sessions/s/append", {{"text", "abc"}});
  ASSERT_EQ(text.outcome(), "200");
  EXPECT_EQ(text.json()["position"], 3);
  const HttpAnswer ids =
      world.Post("/v1/sessions/s/append", {{"tokens", {1, 2}},
                                           {"expected_position", 3},
                                           {"return_logprobs", true}});
  EXPECT_EQ(ids.json()["position"], 5);
  const Json scored = ids.json()["scored"];
  ASSERT_THAT(scored, SizeIs(2));
  EXPECT_FLOAT_EQ(scored[0]["logprob"].get<float>(),
                  world.rpc.runner.LogProbs(Ids{'a', 'b', 'c'})[1]);
  EXPECT_FLOAT_EQ(scored[1]["logprob"].get<float>(),
                  world.rpc.runner.LogProbs(Ids{'a', 'b', 'c', 1})[2]);
}

TEST(SessionPaths, AppendIsDoneOnceUnderARequestId) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  const Json body = {{"text", "abc"}, {"request_id", "r"}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(world.Post("/v1/sessions/s/append", body).json()["position"], 3);
  }
  EXPECT_EQ(world.rpc.GetSession("s").position(), 3);
}

TEST(SessionPaths, AForkStandsOnTheFirstTokensOfItsSession) {
  HttpWorld world;
  world.rpc.MakeSession("s", {1, 2, 3, 4});
  const HttpAnswer fork = world.Post(
      "/v1/sessions/s/fork", {{"new_session_id", "t"}, {"position", 2}});
  ASSERT_EQ(fork.outcome(), "200");
  EXPECT_EQ(fork.json()["session"]["session_id"], "t");
  EXPECT_EQ(fork.json()["session"]["position"], 2);
  const Json tokens =
      world.Get("/v1/sessions/t?include_tokens=true").json()["token_ids"];
  EXPECT_EQ(tokens, Json({1, 2}));
  EXPECT_EQ(world.rpc.GetSession("s").position(), 4);
}

TEST(SessionPaths, ARewindForgetsTheLastTokens) {
  HttpWorld world;
  world.rpc.MakeSession("s", {1, 2, 3, 4});
  EXPECT_EQ(world
                .Post("/v1/sessions/s/rewind",
                      {{"position", 1}, {"expected_position", 3}})
                .outcome(),
            "409 POSITION_MISMATCH");
  const HttpAnswer rewound =
      world.Post("/v1/sessions/s/rewind", {{"position", 1}});
  EXPECT_EQ(rewound.json()["session"]["position"], 1);
  const Json choice = world.Choice({{"session_id", "s"},
                                    {"prompt", {7}},
                                    {"max_tokens", 3},
                                    {"return_token_ids", true}});
  EXPECT_EQ(choice["token_ids"], Json(world.rpc.runner.Continue({1, 7}, 3)));
}

TEST(SessionPaths, ARewindThatDoesNotSayWhereToChangesNothing) {
  HttpWorld world;
  world.rpc.MakeSession("s", {1, 2, 3, 4});
  EXPECT_EQ(world.Post("/v1/sessions/s/rewind", Json::object()).outcome(),
            "400 FIELD_INVALID position");
  EXPECT_EQ(world.rpc.GetSession("s").position(), 4);
  EXPECT_EQ(world.Post("/v1/sessions/s/rewind", {{"position", 0}}).outcome(),
            "200");
  EXPECT_EQ(world.rpc.GetSession("s").position(), 0);
}

TEST(SessionPaths, TokensOfASessionComePageByPage) {
  HttpWorld world;
  world.rpc.MakeSession("s", {'a', 'b', 'c', 'd', 'e'});
  Json ids = Json::array();
  std::string text, token;
  int pages = 0;
  do {
    const Json page =
        world
            .Get(absl::StrCat(
                "/v1/sessions/s?include_tokens=true&page_size=2&page_token=",
                token))
            .json();
    for (const Json& id : page["token_ids"]) ids.push_back(id);
    text += page["text"];
    token = page["next_page_token"];
    ++pages;
  } while (!token.empty() && pages < 9);
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(ids, Json({'a', 'b', 'c', 'd', 'e'}));
  EXPECT_EQ(text, "abcde");
}

TEST(SessionPaths, SessionsAreListedPageByPage) {
  HttpWorld world;
  for (const char* id : {"a", "b", "c"}) world.rpc.MakeSession(id);
  std::vector<std::string> found;
  std::string token;
  for (int pages = 0; pages < 9; ++pages) {
    const Json page =
        world.Get(absl::StrCat("/v1/sessions?page_size=2&page_token=", token))
            .json();
    EXPECT_EQ(page["object"], "list");
    for (const Json& one : page["data"]) found.push_back(one["session_id"]);
    token = page["next_page_token"];
    if (token.empty()) break;
  }
  EXPECT_THAT(found, ::testing::UnorderedElementsAre("a", "b", "c"));
}

TEST(SessionPaths, ADeletedSessionIsGone) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  const HttpAnswer gone = world.Send("DELETE", "/v1/sessions/s");
  EXPECT_EQ(gone.outcome(), "200");
  EXPECT_EQ(gone.json(),
            Json({{"id", "s"}, {"object", "session"}, {"deleted", true}}));
  EXPECT_EQ(world.Get("/v1/sessions/s").outcome(), "404 SESSION_UNKNOWN");
  EXPECT_EQ(world.Send("DELETE", "/v1/sessions/s").outcome(),
            "404 SESSION_UNKNOWN");
}

TEST(SessionPaths, ThePathNamesTheSessionAndNothingElseMay) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  EXPECT_EQ(
      world.Post("/v1/sessions/s/append", {{"text", "a"}, {"session_id", "t"}})
          .outcome(),
      "400 FIELD_INVALID session_id");
  EXPECT_EQ(world
                .Post("/v1/sessions/s/append", {{"text", "a"}},
                      {{"x-txl-session", "t"}})
                .outcome(),
            "400 FIELD_INVALID session_id");
  EXPECT_EQ(
      world.Post("/v1/sessions/s/append", {{"text", "a"}, {"session_id", "s"}})
          .outcome(),
      "200");
}

TEST(SessionPaths, AnEscapedNameIsTheSameName) {
  HttpWorld world;
  world.rpc.MakeSession("s-1");
  EXPECT_EQ(world.Get("/v1/sessions/%73%2d1").json()["session"]["session_id"],
            "s-1");
}

}  // namespace
}  // namespace txl
