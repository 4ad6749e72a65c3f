// Answers of POST /v1/completions that come as server-sent events.

#include <gmock/gmock.h>

#include "absl/strings/match.h"
#include "tests/server/http/http_world.h"

namespace txl {
namespace {

using ::testing::EndsWith;
using ::testing::SizeIs;
using Ids = std::vector<int32_t>;
using Json = nlohmann::json;

HttpAnswer Streamed(HttpWorld& world, Json body,
                    const HttpFields& fields = {}) {
  body["stream"] = true;
  HttpAnswer answer = world.Complete(body, fields);
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_TRUE(answer.whole);
  return answer;
}

// Of one choice.
std::string TextOf(const std::vector<Json>& chunks, int index = 0) {
  std::string text;
  for (const Json& chunk : chunks) {
    for (const Json& choice : chunk["choices"]) {
      if (choice["index"] == index) text += choice["text"];
    }
  }
  return text;
}

Ids IdsOf(const std::vector<Json>& chunks, int index = 0) {
  Ids ids;
  for (const Json& chunk : chunks) {
    for (const Json& choice : chunk["choices"]) {
      if (choice["index"] != index) continue;
      for (const Json& id : choice["token_ids"]) ids.push_back(id);
    }
  }
  return ids;
}

TEST(CompletionStream, HasAnEventForEachTokenAndOneForTheEnd) {
  HttpWorld world;
  const HttpAnswer answer =
      Streamed(world, {{"prompt", "ab"}, {"max_tokens", 5}});
  EXPECT_EQ(answer.header("transfer-encoding"), "chunked");
  EXPECT_EQ(answer.header("cache-control"), "no-store");
  EXPECT_EQ(answer.header("x-accel-buffering"), "no");
  const std::vector<Json> chunks = answer.chunks();
  ASSERT_THAT(chunks, SizeIs(6));
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(chunks[i]["object"], "text_completion");
    EXPECT_EQ(chunks[i]["id"], chunks[0]["id"]);
    EXPECT_EQ(chunks[i]["usage"], Json());
    ASSERT_THAT(chunks[i]["choices"], SizeIs(1));
    EXPECT_EQ(chunks[i]["choices"][0]["finish_reason"],
              i < 5 ? Json() : Json("length"));
  }
}

TEST(CompletionStream, GivesTheTokensAndTheTextOfAWholeAnswer) {
  HttpWorld world;
  const Json body = {
      {"prompt", "ab"}, {"max_tokens", 60}, {"return_token_ids", true}};
  const std::vector<Json> chunks = Streamed(world, body).chunks();
  const Json whole = world.Choice(body);
  EXPECT_EQ(IdsOf(chunks), world.rpc.runner.Continue({97, 98}, 60));
  EXPECT_EQ(TextOf(chunks), whole["text"]);
}

TEST(CompletionStream, LogprobsOfAChunkAreThoseOfAWholeAnswer) {
  HttpWorld world;
  const Json body = {{"prompt", "ab"}, {"max_tokens", 5}, {"logprobs", 2}};
  const Json whole = world.Choice(body)["logprobs"];
  const std::vector<Json> chunks = Streamed(world, body).chunks();
  for (size_t i = 0; i < 5; ++i) {
    const Json& one = chunks[i]["choices"][0]["logprobs"];
    for (const char* list :
         {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
      ASSERT_THAT(one[list], SizeIs(1)) << list;
      EXPECT_EQ(one[list][0].dump(), whole[list][i].dump()) << list;
    }
  }
}

TEST(CompletionStream, EchoComesFirst) {
  HttpWorld world;
  const std::vector<Json> chunks = Streamed(world, {{"prompt", "hey"},
                                                    {"max_tokens", 1},
                                                    {"logprobs", 1},
                                                    {"echo", true}})
                                       .chunks();
  ASSERT_THAT(chunks, SizeIs(3));
  EXPECT_EQ(chunks[0]["choices"][0]["text"], "hey");
  EXPECT_THAT(chunks[0]["choices"][0]["logprobs"]["token_logprobs"], SizeIs(3));
  EXPECT_EQ(chunks[1]["choices"][0]["logprobs"]["text_offset"], Json({3}));
}

TEST(CompletionStream, EchoAloneIsAStreamToo) {
  HttpWorld world;
  const std::vector<Json> chunks =
      Streamed(world, {{"prompt", "hey"}, {"max_tokens", 0}, {"echo", true}})
          .chunks();
  EXPECT_EQ(TextOf(chunks), "hey");
}

TEST(CompletionStream, ChoicesAreToldApartByTheirIndex) {
  HttpWorld world;
  const std::vector<Json> chunks = Streamed(world, {{"prompt", {"ab", "cd"}},
                                                    {"n", 2},
                                                    {"max_tokens", 4},
                                                    {"return_token_ids", true}})
                                       .chunks();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(IdsOf(chunks, i),
              world.rpc.runner.Continue(i < 2 ? Ids{97, 98} : Ids{99, 100}, 4));
  }
}

TEST(CompletionStream, UsageOfAllComesInAChunkOfItsOwn) {
  HttpWorld world;
  const std::vector<Json> chunks =
      Streamed(world, {{"prompt", "ab"},
                       {"n", 2},
                       {"max_tokens", 3},
                       {"stream_options", {{"include_usage", true}}}})
          .chunks();
  EXPECT_EQ(chunks.back()["choices"], Json::array());
  EXPECT_EQ(chunks.back()["usage"],
            Json({{"prompt_tokens", 2},
                  {"completion_tokens", 6},
                  {"total_tokens", 8},
                  {"prompt_tokens_details", {{"cached_tokens", 0}}}}));
  for (size_t i = 0; i + 1 < chunks.size(); ++i) {
    EXPECT_EQ(chunks[i]["usage"], Json());
  }
}

TEST(CompletionStream, ContinuousUsageCountsTheTokensOfEachChunk) {
  HttpWorld world;
  const std::vector<Json> chunks =
      Streamed(world, {{"prompt", "ab"},
                       {"max_tokens", 3},
                       {"stream_options", {{"continuous_usage_stats", true}}}})
          .chunks();
  for (size_t i = 0; i < chunks.size(); ++i) {
    EXPECT_EQ(chunks[i]["usage"]["completion_tokens"],
              std::min<size_t>(i + 1, 3));
    EXPECT_EQ(chunks[i]["usage"]["prompt_tokens"], 2);
    EXPECT_EQ(chunks[i]["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
  }
}

TEST(CompletionStream, DoneAndTheEndOfTheBodyComeTogether) {
  HttpWorld world;
  RawClient client =
      world.Ask("/v1/completions",
                {{"prompt", "a"}, {"max_tokens", 1}, {"stream", true}});
  const std::string all = client.ReceiveUntil("\r\n0\r\n\r\n");
  EXPECT_THAT(all, EndsWith("data: [DONE]\n\n\r\n0\r\n\r\n"));
  // One event a chunk, so that a proxy or a client may take it on its own.
  EXPECT_FALSE(absl::StrContains(all, "\n\ndata: "));
}

TEST(CompletionStream, HasNothingButDataLinesWhereNobodyAskedForMore) {
  HttpWorld world;
  for (const SseEvent& event :
       Streamed(world, {{"prompt", "ab"}, {"max_tokens", 3}}).events()) {
    EXPECT_EQ(event.id, "");
    EXPECT_FALSE(event.data.empty());
  }
}

TEST(CompletionStream, EventsAreNumberedOnRequest) {
  HttpWorld world;
  const std::vector<SseEvent> events =
      Streamed(world, {{"prompt", "ab"},
                       {"max_tokens", 3},
                       {"stream_options", {{"event_ids", true}}}})
          .events();
  ASSERT_THAT(events, SizeIs(5));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(events[i].id, std::to_string(i + 1));
  }
}

TEST(CompletionStream, PingsFillASilenceButNotBetweenNumberedEvents) {
  HttpWorldOptions options;
  options.http.ping = absl::Milliseconds(5);
  HttpWorld world(options);
  world.rpc.runner.Hold();
  Json body = {
      {"prompt", "ab"}, {"max_tokens", 2}, {"stream", true}, {"echo", true}};
  RawClient plain = world.Ask("/v1/completions", body);
  const std::string heard = plain.ReceiveUntil(": ping\n\n");
  EXPECT_TRUE(absl::StrContains(heard, ": ping\n\n"));
  body["stream_options"] = {{"event_ids", true}};
  RawClient numbered = world.Ask("/v1/completions", body);
  numbered.ReceiveUntil("id: 1\n");
  // Several pings of the other one later.
  for (int i = 0; i < 3; ++i) plain.ReceiveUntil(": ping\n\n");
  world.rpc.runner.Release();
  EXPECT_FALSE(absl::StrContains(numbered.ReceiveUntil("0\r\n\r\n"), ": ping"));
}

TEST(CompletionStream, RefusalsBeforeTheFirstEventHaveTheirStatus) {
  HttpWorld world;
  EXPECT_EQ(
      world
          .Complete(
              {{"prompt", "a"}, {"stream", true}, {"session_id", "nobody"}})
          .outcome(),
      "404 SESSION_UNKNOWN");
  EXPECT_EQ(world.Complete({{"prompt", "a"}, {"stream", true}, {"top_p", 2}})
                .outcome(),
            "400 FIELD_INVALID top_p");
}

TEST(CompletionStream, AnEchoWaitsUntilItsTurnIsKnownToRun) {
  HttpWorld world;
  EXPECT_EQ(world
                .Complete({{"prompt", "ab"},
                           {"echo", true},
                           {"stream", true},
                           {"temperature", 199}})
                .outcome(),
            "400 FIELD_INVALID temperature");
}

TEST(CompletionStream, AnErrorAfterTheFirstEventIsTheLastOneBeforeDone) {
  HttpWorld world;
  world.rpc.runner.FailStep(3, absl::InternalError("the device"));
  const std::vector<Json> chunks =
      Streamed(world, {{"prompt", "ab"}, {"max_tokens", 50}}).chunks();
  ASSERT_FALSE(chunks.empty());
  EXPECT_EQ(chunks.back()["error"]["code"], "STEP_FAILED");
  EXPECT_EQ(chunks.back()["error"]["type"], "server_error");
}

TEST(CompletionStream, ADrainIsAnErrorEventAndNeverALength) {
  HttpWorld world;
  RawClient client =
      world.Ask("/v1/completions",
                {{"prompt", "ab"}, {"max_tokens", 4000}, {"stream", true}});
  client.ReceiveUntil("data: ");
  world.rpc.scheduler->StartDrain();
  world.rpc.scheduler->EndAll();
  const std::string rest = client.ReceiveUntil("0\r\n\r\n");
  EXPECT_TRUE(absl::StrContains(rest, "\"code\":\"SERVER_DRAIN\"")) << rest;
  EXPECT_FALSE(absl::StrContains(rest, "\"finish_reason\":\"length\""));
  EXPECT_THAT(rest, EndsWith("data: [DONE]\n\n\r\n0\r\n\r\n"));
}

}  // namespace
}  // namespace txl
