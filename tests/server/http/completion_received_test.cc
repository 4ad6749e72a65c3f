// `received` over HTTP: a stream that broke goes on where its client is.

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
  const Json whole = world.Choice(kTurn);
  ASSERT_EQ(whole["token_ids"].size(), 8u);
  for (size_t count = 0; count < 8; ++count) {
    const auto split = whole["token_ids"].begin() + static_cast<int>(count);
    const Json::array_t had(whole["token_ids"].begin(), split);
    const Json::array_t missing(split, whole["token_ids"].end());
    const Json rest = world.Choice(Resumed(kTurn, had));
    EXPECT_EQ(rest["token_ids"], Json(missing)) << count;
    EXPECT_EQ(rest["finish_reason"], whole["finish_reason"]);
  }
}

// Also within a character of several bytes.
TEST(CompletionReceived, OffsetsAndTheEchoedTextAreThoseOfTheWholeTurn) {
  HttpWorld world;
  Json turn = kTurn;
  turn["prompt"] = "\u00e9b";
  turn["logprobs"] = 0;
  const Json whole = world.Choice(turn);
  const Json& offsets = whole["logprobs"]["text_offset"];
  for (int count = 0; count < 8; ++count) {
    const auto split = whole["token_ids"].begin() + count;
    const Json::array_t had(whole["token_ids"].begin(), split);
    const Json rest = world.Choice(Resumed(turn, had))["logprobs"];
    EXPECT_EQ(rest["text_offset"],
              Json(Json::array_t(offsets.begin() + count, offsets.end())))
        << count;
    Json echoed = kTurn;
    echoed["prompt"] = {0xc3, 0xa9, 'b'};
    echoed["echo"] = true;
    EXPECT_EQ(world.Choice(Resumed(echoed, had))["text"],
              "\u00e9b" + whole["text"].get<std::string>())
        << count;
  }
}

TEST(CompletionReceived, OthersThanTheSessionsAreAConflict) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  Json turn = kTurn;
  turn["session_id"] = "s";
  turn["request_id"] = "r";
  Json ids = world.Choice(turn)["token_ids"];
  ASSERT_EQ(ids.size(), 8u);
  ids[3] = ids[3].get<int>() ^ 1;
  const HttpAnswer answer = world.Complete(Resumed(turn, ids));
  EXPECT_EQ(answer.outcome(), "409 RESUME_MISMATCH");
}

}  // namespace
}  // namespace txl
