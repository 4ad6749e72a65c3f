// POST /v1/chat/completions: the same turn as a completion of the prompt that
// the messages are, in a chat's shape.

#include <gmock/gmock.h>

#include "tests/server/http/http_world.h"

namespace txl {
namespace {

using ::testing::SizeIs;
using ::testing::StartsWith;
using Json = nlohmann::json;

HttpWorldOptions WithFormat() {
  HttpWorldOptions options;
  ChatFormat& format = options.rpc.generation.chat.emplace();
  format.user = {"Q:", "\n"};
  format.assistant = {"A:", "\n"};
  format.answer = "A:";
  return options;
}

class Chat : public ::testing::Test {
 protected:
  Chat() : world(WithFormat()) {}

  // Asks what the completion of `kPrompt` continues.
  HttpAnswer Ask(Json fields) {
    fields["messages"] = {{{"role", "user"}, {"content", "hi"}}};
    return world.Post("/v1/chat/completions", fields);
  }
  HttpAnswer Complete(Json fields) {
    fields["prompt"] = kPrompt;
    return world.Complete(fields);
  }

  static constexpr char kPrompt[] = "Q:hi\nA:";
  HttpWorld world;
};

TEST_F(Chat, AnswersWhatTheCompletionOfItsPromptDoes) {
  const HttpAnswer answer = Ask({{"max_tokens", 9}});
  ASSERT_EQ(answer.outcome(), "200");
  const Json json = answer.json();
  EXPECT_THAT(json["id"].get<std::string>(), StartsWith("chatcmpl-"));
  EXPECT_EQ(json["object"], "chat.completion");
  EXPECT_EQ(json["model"], "fake");
  ASSERT_THAT(json["choices"], SizeIs(1));
  const Json& choice = json["choices"][0];
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_EQ(choice["message"]["content"],
            Complete({{"max_tokens", 9}}).json()["choices"][0]["text"]);
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(json["usage"],
            Json({{"prompt_tokens", 7},
                  {"completion_tokens", 9},
                  {"total_tokens", 16},
                  {"prompt_tokens_details", {{"cached_tokens", 0}}}}));
}

TEST_F(Chat, AStreamBeginsWithTheRoleAndGivesTheSameText) {
  const HttpAnswer answer =
      Ask({{"max_tokens", 9},
           {"stream", true},
           {"stream_options", {{"include_usage", true}}}});
  ASSERT_EQ(answer.outcome(), "200");
  const std::vector<Json> chunks = answer.chunks();
  ASSERT_THAT(chunks, SizeIs(1 + 9 + 1 + 1));
  EXPECT_EQ(chunks[0]["choices"][0]["delta"],
            Json({{"role", "assistant"}, {"content", ""}}));
  std::string text;
  for (size_t i = 0; i + 1 < chunks.size(); ++i) {
    EXPECT_EQ(chunks[i]["object"], "chat.completion.chunk");
    EXPECT_EQ(chunks[i]["id"], chunks[0]["id"]);
    const Json& delta = chunks[i]["choices"][0]["delta"];
    EXPECT_EQ(delta.contains("role"), i == 0);
    text += delta.value("content", "");
  }
  EXPECT_EQ(text, Complete({{"max_tokens", 9}}).json()["choices"][0]["text"]);
  EXPECT_EQ(chunks[10]["choices"][0]["finish_reason"], "length");
  EXPECT_THAT(chunks[11]["choices"], SizeIs(0));
  EXPECT_EQ(chunks[11]["usage"]["completion_tokens"], 9);
}

TEST_F(Chat, EveryChoiceOfAStreamBeginsWithTheRole) {
  const std::vector<Json> chunks =
      Ask({{"max_tokens", 3}, {"n", 3}, {"stream", true}}).chunks();
  std::map<int, int> roles;
  for (const Json& chunk : chunks) {
    const Json& choice = chunk["choices"][0];
    roles[choice["index"]] += choice["delta"].contains("role") ? 1 : 0;
  }
  EXPECT_EQ(roles, (std::map<int, int>{{0, 1}, {1, 1}, {2, 1}}));
}

TEST_F(Chat, LogprobsAreThoseOfTheCompletion) {
  const Json content =
      Ask({{"max_tokens", 4}, {"logprobs", true}, {"top_logprobs", 2}})
          .json()["choices"][0]["logprobs"]["content"];
  const Json lists = Complete({{"max_tokens", 4}, {"logprobs", 2}})
                         .json()["choices"][0]["logprobs"];
  ASSERT_THAT(content, SizeIs(4));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(content[i]["token"], lists["tokens"][i]);
    EXPECT_EQ(content[i]["logprob"], lists["token_logprobs"][i]);
    EXPECT_THAT(content[i]["top_logprobs"], SizeIs(2));
  }
}

TEST_F(Chat, NamedIdsStandBehindTheAlternatives) {
  const Json content = Ask({{"max_tokens", 2}, {"logprob_token_ids", {'x'}}})
                           .json()["choices"][0]["logprobs"]["content"];
  ASSERT_THAT(content, SizeIs(2));
  for (const Json& token : content) {
    ASSERT_THAT(token["top_logprobs"], SizeIs(1));
    EXPECT_EQ(token["top_logprobs"][0]["token"], "x");
  }
}

TEST_F(Chat, TurnsOfASessionGoOnFromEachOther) {
  world.rpc.MakeSession("verona");
  EXPECT_EQ(Ask({{"max_tokens", 4}, {"session_id", "verona"}})
                .header("x-txl-session"),
            "verona");
  EXPECT_EQ(Ask({{"max_tokens", 4}, {"session_id", "verona"}}).outcome(),
            "200");
  EXPECT_EQ(world.rpc.GetSession("verona").position(), 2 * (7 + 4));
}

TEST_F(Chat, ErrorsOfTheTextNameTheMessages) {
  HttpWorldOptions options = WithFormat();
  options.rpc.limits.prompt_tokens = 6;
  HttpWorld small(options);
  EXPECT_EQ(small
                .Post("/v1/chat/completions",
                      {{"messages", {{{"role", "user"}, {"content", "hi"}}}}})
                .outcome(),
            "400 OVER_LIMIT messages");
}

TEST_F(Chat, ErrorsNameTheFieldThatTheBodyHas) {
  EXPECT_EQ(Ask({{"max_completion_tokens", 4097}}).outcome(),
            "400 OVER_LIMIT max_completion_tokens");
  EXPECT_EQ(Ask({{"max_tokens", 4097}}).outcome(), "400 OVER_LIMIT max_tokens");
  EXPECT_EQ(Ask({{"logprobs", true}, {"top_logprobs", 21}}).outcome(),
            "400 OVER_LIMIT top_logprobs");
}

TEST_F(Chat, AnAnswerEndsAtTheFormatsStopText) {
  const std::string whole =
      Complete({{"max_tokens", 200}}).json()["choices"][0]["text"];
  const size_t at = whole.find_first_of("abcdefghijklmnopqrstuvwxyz", 3);
  ASSERT_NE(at, std::string::npos);
  HttpWorldOptions options = WithFormat();
  options.rpc.generation.chat->stop_texts = {whole.substr(at, 1)};
  HttpWorld stops(options);
  const Json choice =
      stops
          .Post("/v1/chat/completions",
                {{"messages", {{{"role", "user"}, {"content", "hi"}}}},
                 {"max_tokens", 200}})
          .json()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["message"]["content"],
            whole.substr(0, whole.find(whole[at])));
}

}  // namespace
}  // namespace txl
