// `received` over HTTP: a stream that broke goes on where its client is.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/server/http/http_world.h"

namespace txl {
namespace {

using Json = nlohmann::json;

const Json kTurn = {{"prompt", "ab"},
                    {"max_tokens", 8},
                    {"seed", 7},
                    {"return_token_ids", true}};

// The turn of a client that has these tokens of it.
Json Resumed(Json turn, const Json& ids) {
  turn["received"] = {{"seed", 7}, {"token_ids", ids}};
  return turn;
}

TEST(CompletionReceived, ATurnWithoutASessionGoesOnBehindIt) {
  HttpWorld world;
  const Json whole = world.Complete(kTurn).json()["choices"][0];
  ASSERT_EQ(whole["token_ids"].size(), 8u);
  for (size_t count = 0; count < 8; ++count) {
    const auto split = whole["token_ids"].begin() + static_cast<int>(count);
    const Json::array_t had(whole["token_ids"].begin(), split);
    const Json::array_t missing(split, whole["token_ids"].end());
    const Json rest = world.Complete(Resumed(kTurn, had)).json()["choices"][0];
    EXPECT_EQ(rest["token_ids"], Json(missing)) << count;
    EXPECT_EQ(rest["finish_reason"], whole["finish_reason"]);
  }
}

TEST(CompletionReceived, OthersThanTheSessionsAreAConflict) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  Json turn = kTurn;
  turn["session_id"] = "s";
  turn["request_id"] = "r";
  Json ids = world.Complete(turn).json()["choices"][0]["token_ids"];
  ASSERT_EQ(ids.size(), 8u);
  ids[3] = ids[3].get<int>() ^ 1;
  const HttpAnswer answer = world.Complete(Resumed(turn, ids));
  EXPECT_EQ(answer.outcome(), "409 RESUME_MISMATCH");
}

}  // namespace
}  // namespace txl
