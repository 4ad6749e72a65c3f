#include "server/http/chat_request.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/http/json_in.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

ModelFacts Facts(bool system = true) {
  ModelFacts facts;
  facts.name = "verona";
  ChatFormat& format = facts.generation.chat.emplace();
  if (system) format.system = ChatRole{"[", "]\n"};
  format.user = {"Q: ", "\n"};
  format.assistant = {"A: ", ".\n"};
  format.answer = "A: ";
  format.stop_texts = {"\nQ:"};
  return facts;
}

absl::StatusOr<CompletionRequest> Read(const std::string& body,
                                       const ModelFacts& facts = Facts()) {
  const absl::StatusOr<Json> json = ParseBody(body);
  EXPECT_TRUE(json.ok()) << body;
  return ReadChat(*json, HttpRequest(), facts);
}

// Of a body with these messages.
std::string Prompt(const std::string& messages) {
  const auto request = Read(absl::StrCat(R"({"messages": )", messages, "}"));
  EXPECT_TRUE(request.ok()) << request.status();
  return request.ok() ? request->turns[0].text() : "";
}

std::string Verdict(const std::string& body,
                    const ModelFacts& facts = Facts()) {
  const absl::Status status = Read(body, facts).status();
  if (status.ok()) return "ok";
  const ErrorDetails details = GetErrorDetails(status);
  return absl::StrCat(details.reason, " ", details.field);
}

// The fields of a body behind a message.
std::string With(const std::string& fields) {
  return absl::StrCat(R"({"messages": [{"role": "user", "content": "hi"}], )",
                      fields, "}");
}

TEST(ReadChat, AMessageStandsBetweenTheTextsOfItsRole) {
  EXPECT_EQ(Prompt(R"([{"role": "user", "content": "hi"}])"), "Q: hi\nA: ");
  EXPECT_EQ(Prompt(R"([{"role": "system", "content": "Be brief."},
                       {"role": "user", "content": "hi"},
                       {"role": "assistant", "content": "yes"},
                       {"role": "user", "content": "no"}])"),
            "[Be brief.]\nQ: hi\nA: yes.\nQ: no\nA: ");
  EXPECT_EQ(Prompt(R"([{"role": "developer", "content": "x"}])"), "[x]\nA: ");
}

TEST(ReadChat, AContentMayComeInParts) {
  EXPECT_EQ(Prompt(R"([{"role": "user", "content": [
                         {"type": "text", "text": "he"},
                         {"type": "text", "text": "llo"}]}])"),
            "Q: hello\nA: ");
  EXPECT_EQ(Prompt(R"([{"role": "user", "content": []}])"), "Q: \nA: ");
}

TEST(ReadChat, MessagesThatAreNoneAreRefused) {
  for (const char* messages :
       {"null", "{}", "[]", "[1]", R"([{"content": "a"}])",
        R"([{"role": "tool", "content": "a"}])", R"([{"role": "user"}])",
        R"([{"role": "user", "content": 1}])",
        R"([{"role": "user", "content": ["a"]}])",
        R"([{"role": "user", "content": [{"type": "image_url"}]}])",
        R"([{"role": "user", "content": [{"type": "text", "text": 1}]}])"}) {
    EXPECT_EQ(Verdict(absl::StrCat(R"({"messages": )", messages, "}")),
              "FIELD_INVALID messages")
        << messages;
  }
  EXPECT_EQ(Verdict(R"({"messages": [{"role": 1, "content": "a"}]})"),
            "FIELD_INVALID role");
}

TEST(ReadChat, ASystemsMessageNeedsAModelThatKnowsOne) {
  const std::string body =
      R"({"messages": [{"role": "user", "content": "a"},
                       {"role": "system", "content": "a"}]})";
  EXPECT_EQ(Verdict(body), "ok");
  const absl::Status status = Read(body, Facts(false)).status();
  EXPECT_EQ(GetErrorDetails(status).field, "messages");
  EXPECT_THAT(std::string(status.message()), HasSubstr("message 1"));
}

TEST(ReadChat, WithoutAFormatThereIsNoChat) {
  EXPECT_EQ(Verdict(With(R"("n": 1)"), ModelFacts()), "NO_CHAT_FORMAT ");
}

TEST(ReadChat, TheFormatsStopTextsStandBesideTheRequests) {
  EXPECT_THAT(Read(With(R"("n": 1)"))->turns[0].stop().stop_texts(),
              ElementsAre("\nQ:"));
  EXPECT_THAT(Read(With(R"("stop": "x")"))->turns[0].stop().stop_texts(),
              ElementsAre("x", "\nQ:"));
}

TEST(ReadChat, TokensToGenerateHaveTwoNames) {
  const auto most = [](const std::string& fields) {
    return Read(With(fields))->turns[0].stop().max_tokens();
  };
  EXPECT_EQ(most(R"("max_tokens": 5)"), 5);
  EXPECT_EQ(most(R"("max_completion_tokens": 6)"), 6);
  EXPECT_EQ(most(R"("max_tokens": 5, "max_completion_tokens": 6)"), 6);
  // The turn's own default, not a completion's.
  EXPECT_FALSE(Read(With(R"("n": 1)"))->turns[0].stop().has_max_tokens());
  for (const char* name : {"max_tokens", "max_completion_tokens"}) {
    EXPECT_EQ(Verdict(With(absl::StrCat("\"", name, "\": 4294967297"))),
              absl::StrCat("FIELD_INVALID ", name));
  }
}

TEST(ReadChat, LogprobsAreAskedForByAFlagAndCountedByAnotherField) {
  EXPECT_FALSE(Read(With(R"("logprobs": false)"))->logprobs.has_value());
  EXPECT_FALSE(Read(With(R"("logprobs": false, "top_logprobs": 0)"))->logprobs);
  EXPECT_EQ(Read(With(R"("logprobs": true)"))->logprobs, 0);
  const auto request = Read(With(R"("logprobs": true, "top_logprobs": 3)"));
  EXPECT_EQ(request->logprobs, 3);
  EXPECT_EQ(request->turns[0].output().logprobs(), 3u);
  EXPECT_EQ(Verdict(With(R"("top_logprobs": 3)")),
            "FIELD_INVALID top_logprobs");
  EXPECT_EQ(Verdict(With(R"("logprobs": 3)")), "FIELD_INVALID logprobs");
  EXPECT_EQ(Verdict(With(R"("logprobs": true, "top_logprobs": -1)")),
            "FIELD_INVALID top_logprobs");
}

TEST(ReadChat, OtherFieldsAreThoseOfACompletion) {
  const auto request = Read(With(
      R"("n": 3, "seed": 9, "temperature": 0.5, "stream": true,
         "stream_options": {"include_usage": true}, "mirostat": 1)"));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_TRUE(request->chat && request->stream && request->include_usage);
  EXPECT_EQ(request->n, 3);
  EXPECT_EQ(request->seed, 9u);
  EXPECT_EQ(request->turns[0].sampling().temperature(), 0.5);
  EXPECT_THAT(request->ignored, ElementsAre("mirostat"));
  EXPECT_EQ(Verdict(With(R"("model": "rome")")), "model_not_found model");
  EXPECT_EQ(Verdict(With(R"("tools": [{}])")), "FIELD_INVALID tools");
  EXPECT_EQ(Verdict(With(R"("n": 0)")), "FIELD_INVALID n");
}

}  // namespace
}  // namespace txl
