#include "server/http/completion_request.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "model/text/utf8.h"
#include "server/base/error.h"
#include "server/http/json_in.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Json = nlohmann::json;

ModelFacts CompletionFacts() {
  ModelFacts facts;
  facts.name = "verona";
  return facts;
}

absl::StatusOr<CompletionRequest> ReadBody(
    const std::string& body, std::map<std::string, std::string> headers = {}) {
  HttpRequest http;
  http.headers = std::move(headers);
  const absl::StatusOr<Json> json = ParseBody(body);
  EXPECT_TRUE(json.ok()) << body;
  return ReadCompletion(*json, http, CompletionFacts());
}

// "OVER_LIMIT n", "ok".
std::string BodyVerdict(const std::string& body,
                        std::map<std::string, std::string> headers = {}) {
  const absl::Status status = ReadBody(body, std::move(headers)).status();
  if (status.ok()) return "ok";
  const ErrorDetails details = GetErrorDetails(status);
  return absl::StrCat(details.reason, " ", details.field);
}

TEST(ReadCompletion, AnEmptyBodyIsATurnWithOpenAisDefaults) {
  const auto request = ReadBody("{}");
  ASSERT_TRUE(request.ok()) << request.status();
  ASSERT_THAT(request->turns, SizeIs(1));
  EXPECT_EQ(request->turns[0].prompt_case(),
            v1::GenerateRequest::PROMPT_NOT_SET);
  EXPECT_EQ(request->turns[0].stop().max_tokens(), 16);
  EXPECT_FALSE(request->turns[0].sampling().has_temperature());
  EXPECT_EQ(request->n, 1);
  EXPECT_EQ(request->best_of, 1);
  EXPECT_FALSE(request->seed.has_value());
  EXPECT_FALSE(request->logprobs.has_value());
  EXPECT_FALSE(request->stream || request->echo || request->include_usage ||
               request->event_ids || request->return_token_ids ||
               request->tokens_as_ids || request->continuous_usage);
  EXPECT_TRUE(request->generates);
  EXPECT_THAT(request->ignored, IsEmpty());
}

TEST(ReadCompletion, APromptIsTextIdsOrAListOfEither) {
  EXPECT_EQ(ReadBody(R"({"prompt": "a"})")->turns[0].text(), "a");
  EXPECT_THAT(ReadBody(R"({"prompt": [1, 2]})")->turns[0].tokens().ids(),
              ElementsAre(1, 2));
  const auto mixed = ReadBody(R"({"prompt": ["a", [1, 2], "b"]})");
  ASSERT_THAT(mixed->turns, SizeIs(3));
  EXPECT_EQ(mixed->turns[0].text(), "a");
  EXPECT_THAT(mixed->turns[1].tokens().ids(), ElementsAre(1, 2));
  EXPECT_EQ(mixed->turns[2].text(), "b");
  EXPECT_THAT(ReadBody(R"({"prompt": [20.0]})")->turns[0].tokens().ids(),
              ElementsAre(20));
}

// As LangChain sends it: always a list.
TEST(ReadCompletion, AnEmptyPromptIsNoneAloneAndInAList) {
  using Turn = v1::GenerateRequest;
  for (const char* prompt : {"\"\"", "[\"\"]", "[[]]", "null"}) {
    const auto request = ReadBody(absl::StrCat("{\"prompt\":", prompt, "}"));
    ASSERT_TRUE(request.ok()) << prompt << request.status();
    ASSERT_THAT(request->turns, SizeIs(1)) << prompt;
    EXPECT_EQ(request->turns[0].prompt_case(), Turn::PROMPT_NOT_SET) << prompt;
  }
  const auto mixed = ReadBody(R"({"prompt": ["", "a", []]})");
  ASSERT_THAT(mixed->turns, SizeIs(3));
  EXPECT_EQ(mixed->turns[0].prompt_case(), Turn::PROMPT_NOT_SET);
  EXPECT_EQ(mixed->turns[1].text(), "a");
  EXPECT_EQ(mixed->turns[2].prompt_case(), Turn::PROMPT_NOT_SET);
}

TEST(ReadCompletion, APromptOfAnotherKindIsRefused) {
  for (const char* prompt :
       {"1", "true", "{}", "[]", "[true]", "[null]", "[{}]", "[1, \"a\"]",
        "[\"a\", 1]", "[1.5]", "[-1]", "[4294967296]", "[[\"a\"]]", "[[[1]]]",
        "[[1], null]"}) {
    EXPECT_THAT(BodyVerdict(absl::StrCat("{\"prompt\":", prompt, "}")),
                StartsWith("FIELD_INVALID prompt"))
        << prompt;
  }
}

TEST(ReadCompletion, SamplingFieldsBecomeTheTurns) {
  const auto request =
      ReadBody(R"({"temperature": 0.5, "top_k": 7, "top_p": 0.9,
      "min_p": 0.1, "typical_p": 0.8, "repetition_penalty": 1.1,
      "presence_penalty": 0.2, "frequency_penalty": -0.3, "penalty_window": 9,
      "min_tokens": 2, "logit_bias": {"7": -100, "9": 1.5}, "prompt": "a",
      "allowed_token_ids": [9, 7.0], "follow_kinds": true})");
  ASSERT_TRUE(request.ok()) << request.status();
  const v1::SamplingParams& sampling = request->turns[0].sampling();
  EXPECT_EQ(sampling.temperature(), 0.5);
  EXPECT_EQ(sampling.top_k(), 7);
  EXPECT_EQ(sampling.top_p(), 0.9);
  EXPECT_EQ(sampling.min_p(), 0.1);
  EXPECT_EQ(sampling.typical_p(), 0.8);
  EXPECT_EQ(sampling.repetition_penalty(), 1.1);
  EXPECT_EQ(sampling.presence_penalty(), 0.2);
  EXPECT_EQ(sampling.frequency_penalty(), -0.3);
  EXPECT_EQ(sampling.penalty_window(), 9);
  EXPECT_EQ(sampling.min_tokens(), 2);
  EXPECT_EQ(sampling.logit_bias().at(7), -100);
  EXPECT_EQ(sampling.logit_bias().at(9), 1.5);
  EXPECT_THAT(sampling.allowed_token_ids(), ElementsAre(9, 7));
  EXPECT_TRUE(sampling.follow_kinds());
  const auto off = ReadBody(R"({"follow_kinds": false})");
  EXPECT_TRUE(off->turns[0].sampling().has_follow_kinds());
  EXPECT_FALSE(off->turns[0].sampling().follow_kinds());
  EXPECT_EQ(ReadBody(R"({"top_k": -1})")->turns[0].sampling().top_k(), 0);
}

TEST(ReadCompletion, StopFieldsBecomeTheTurns) {
  const auto request = ReadBody(R"({"max_tokens": 5, "stop": ["a", "b"],
      "stop_token_ids": [3], "ignore_eos": true,
      "include_stop_str_in_output": true,
      "stop_token_count": {"id": 0, "count": 8}})");
  const v1::StopConditions& stop = request->turns[0].stop();
  EXPECT_EQ(stop.max_tokens(), 5);
  EXPECT_THAT(stop.stop_texts(), ElementsAre("a", "b"));
  EXPECT_THAT(stop.stop_token_ids(), ElementsAre(3));
  EXPECT_TRUE(stop.ignore_end_token());
  EXPECT_TRUE(stop.include_stop_text());
  EXPECT_EQ(stop.token_count().ShortDebugString(), "id: 0 count: 8");
  EXPECT_THAT(ReadBody(R"({"stop": "a"})")->turns[0].stop().stop_texts(),
              ElementsAre("a"));
}

TEST(ReadCompletion, EveryPromptsTurnHasTheSameParameters) {
  const auto request =
      ReadBody(R"({"prompt": ["a", "b"], "top_p": 0.5, "logprobs": 3})");
  for (const v1::GenerateRequest& turn : request->turns) {
    EXPECT_EQ(turn.sampling().top_p(), 0.5);
    EXPECT_EQ(turn.output().logprobs(), 3u);
  }
}

TEST(ReadCompletion, FieldsOfAnotherKindAreNamed) {
  for (const char* name : {"temperature",
                           "top_p",
                           "min_p",
                           "typical_p",
                           "repetition_penalty",
                           "presence_penalty",
                           "frequency_penalty",
                           "top_k",
                           "penalty_window",
                           "min_tokens",
                           "max_tokens",
                           "n",
                           "best_of",
                           "seed",
                           "logprobs",
                           "stream",
                           "echo",
                           "ignore_eos",
                           "include_stop_str_in_output",
                           "stop_token_ids",
                           "logit_bias",
                           "return_token_ids",
                           "return_tokens_as_token_ids",
                           "expected_position",
                           "stream_options"}) {
    EXPECT_EQ(BodyVerdict(absl::StrCat("{\"", name, "\": \"x\"}")),
              absl::StrCat("FIELD_INVALID ", name));
  }
  for (const char* name :
       {"model", "suffix", "session_id", "request_id", "stop"}) {
    EXPECT_EQ(BodyVerdict(absl::StrCat("{\"", name, "\": 1}")),
              absl::StrCat("FIELD_INVALID ", name));
  }
  for (const char* name :
       {"include_usage", "continuous_usage_stats", "event_ids"}) {
    EXPECT_EQ(
        BodyVerdict(absl::StrCat("{\"stream_options\": {\"", name, "\": 1}}")),
        absl::StrCat("FIELD_INVALID ", name));
  }
}

TEST(ReadCompletion, NumbersThatFitNoTurnAreNamedAndNeverWrapped) {
  for (const char* name : {"max_tokens", "min_tokens", "penalty_window"}) {
    for (const char* value : {"2147483648", "-2147483649", "4294967297"}) {
      EXPECT_EQ(BodyVerdict(absl::StrCat("{\"", name, "\": ", value, "}")),
                absl::StrCat("FIELD_INVALID ", name));
    }
  }
  for (const char* value : {"-1", "4294967296", "4294967297"}) {
    EXPECT_EQ(BodyVerdict(absl::StrCat("{\"logprobs\": ", value, "}")),
              "FIELD_INVALID logprobs");
  }
  EXPECT_EQ(BodyVerdict(R"({"seed": 18446744073709551616})"),
            "FIELD_INVALID seed");
  EXPECT_EQ(BodyVerdict(R"({"seed": 0.5})"), "FIELD_INVALID seed");
}

TEST(ReadCompletion, ASeedHas64Bits) {
  EXPECT_EQ(ReadBody(R"({"seed": 18446744073709551615})")->seed, UINT64_MAX);
  EXPECT_EQ(ReadBody(R"({"seed": -1})")->seed, UINT64_MAX);
  EXPECT_EQ(ReadBody(R"({"seed": -9223372036854775808})")->seed,
            uint64_t{1} << 63);
  EXPECT_EQ(ReadBody(R"({"seed": 7.0})")->seed, 7u);
}

TEST(ReadCompletion, BoundsChoicesTimesPrompts) {
  EXPECT_EQ(BodyVerdict(R"({"n": 128})"), "ok");
  EXPECT_EQ(BodyVerdict(R"({"n": 129})"), "OVER_LIMIT n");
  EXPECT_EQ(BodyVerdict(R"({"best_of": 129})"), "OVER_LIMIT best_of");
  EXPECT_EQ(BodyVerdict(R"({"n": 9223372036854775807})"), "OVER_LIMIT n");
  EXPECT_EQ(BodyVerdict(R"({"n": 0})"), "FIELD_INVALID n");
  EXPECT_EQ(BodyVerdict(R"({"n": -1})"), "FIELD_INVALID n");
  EXPECT_EQ(BodyVerdict(R"({"n": 3, "best_of": 2})"), "FIELD_INVALID best_of");
  EXPECT_EQ(BodyVerdict(R"({"best_of": 2, "stream": true})"),
            "FIELD_INVALID best_of");
  Json body = {{"n", 2}, {"prompt", std::vector<std::string>(64, "a")}};
  EXPECT_EQ(BodyVerdict(body.dump()), "ok");
  body["prompt"].push_back("a");
  EXPECT_EQ(BodyVerdict(body.dump()), "OVER_LIMIT prompt");
}

TEST(ReadCompletion, NoTokenAtAllIsAnEchosAlone) {
  EXPECT_FALSE(ReadBody(R"({"echo": true, "max_tokens": 0})")->generates);
  // Left to the turn, which refuses it.
  EXPECT_TRUE(ReadBody(R"({"max_tokens": 0})")->generates);
  EXPECT_TRUE(ReadBody(R"({"echo": true, "max_tokens": 1})")->generates);
}

TEST(ReadCompletion, AnotherModelIsNotFoundAndTheRightOneIsNamed) {
  EXPECT_EQ(BodyVerdict(R"({"model": "verona"})"), "ok");
  EXPECT_EQ(BodyVerdict(R"({"model": ""})"), "ok");
  const absl::Status status = ReadBody(R"({"model": "gpt"})").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(GetErrorDetails(status).reason, "model_not_found");
  EXPECT_THAT(status.message(), HasSubstr("\"verona\""));
}

TEST(ReadCompletion, ALongModelNameIsCutAtTheBorderOfACharacter) {
  for (int shift = 0; shift < 4; ++shift) {
    std::string name(static_cast<size_t>(shift), 'a');
    for (int i = 0; i < 200; ++i) name += "語";
    const absl::Status status =
        ReadBody(Json({{"model", name}}).dump()).status();
    const std::string message(status.message());
    EXPECT_EQ(ReplaceInvalidUtf8(message), message);
    EXPECT_LT(message.size(), 200u);
  }
}

TEST(ReadCompletion, RefusesWhatOthersServeAndWeDoNot) {
  EXPECT_EQ(BodyVerdict(R"({"suffix": "x"})"), "FIELD_INVALID suffix");
  EXPECT_EQ(BodyVerdict(R"({"suffix": ""})"), "ok");
  EXPECT_EQ(BodyVerdict(R"({"tools": [{"type": "function"}]})"),
            "FIELD_INVALID tools");
  EXPECT_EQ(BodyVerdict(R"({"tools": []})"), "ok");
  EXPECT_EQ(BodyVerdict(R"({"functions": [{}]})"), "FIELD_INVALID functions");
  EXPECT_EQ(BodyVerdict(R"({"tool_choice": "auto"})"),
            "FIELD_INVALID tool_choice");
  EXPECT_EQ(BodyVerdict(R"({"tool_choice": "none"})"), "ok");
  EXPECT_EQ(BodyVerdict(R"({"response_format": {"type": "json_object"}})"),
            "FIELD_INVALID response_format");
  EXPECT_EQ(BodyVerdict(R"({"response_format": "text"})"),
            "FIELD_INVALID response_format");
  EXPECT_EQ(BodyVerdict(R"({"response_format": {"type": "text"}})"), "ok");
}

TEST(ReadCompletion, NamedIdsStandBesideLogprobsOrAlone) {
  const auto alone = ReadBody(R"({"logprob_token_ids": [9, 4]})");
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->logprobs, 0);
  EXPECT_THAT(alone->turns[0].output().logprob_token_ids(), ElementsAre(9, 4));
  const auto beside = ReadBody(R"({"logprob_token_ids": [9], "logprobs": 3})");
  EXPECT_EQ(beside->logprobs, 3);
  EXPECT_EQ(beside->turns[0].output().logprobs(), 3u);
  EXPECT_FALSE(ReadBody(R"({"logprob_token_ids": []})")->logprobs.has_value());
  EXPECT_EQ(BodyVerdict(R"({"logprob_token_ids": [9], "echo": true,
                            "session_id": "s", "request_id": "r"})"),
            "FIELD_INVALID echo");
}

TEST(ReadCompletion, ATokenCountIsAnObjectOfIdAndCount) {
  for (const auto& [count, verdict] :
       {std::pair("5", "FIELD_INVALID stop_token_count"),
        std::pair("[5, 1]", "FIELD_INVALID stop_token_count"),
        std::pair(R"({"id": "a"})", "FIELD_INVALID stop.token_count.id"),
        std::pair(R"({"id": 1, "count": 3000000000})",
                  "FIELD_INVALID stop.token_count.count"),
        std::pair(R"({"id": 1, "counts": 3})",
                  "FIELD_INVALID stop.token_count.counts"),
        std::pair("null", "ok")}) {
    EXPECT_EQ(BodyVerdict(absl::StrCat("{\"stop_token_count\":", count, "}")),
              verdict)
        << count;
  }
}

TEST(ReadCompletion, ALogitBiasMapsIdsToNumbers) {
  for (const char* bias :
       {"[]", "1", R"({"a": 1})", R"({"-1": 1})", R"({"1.5": 1})",
        R"({"4294967296": 1})", R"({"1": "x"})", R"({"1": null})"}) {
    EXPECT_EQ(BodyVerdict(absl::StrCat("{\"logit_bias\":", bias, "}")),
              "FIELD_INVALID logit_bias")
        << bias;
  }
}

TEST(ReadCompletion, LastEventIdNumbersEventsAndSkipsSome) {
  const auto request = ReadBody(R"({"session_id": "s", "request_id": "r"})",
                                {{"last-event-id", "12"}});
  EXPECT_TRUE(request->event_ids);
  EXPECT_EQ(request->skip_events, 12);
  for (const char* none : {"-1", "x", "1.5", "99999999999999999999"}) {
    EXPECT_EQ(BodyVerdict("{}", {{"last-event-id", none}}),
              "FIELD_INVALID Last-Event-ID")
        << none;
  }
}

TEST(ReadCompletion, GoesOnOnlyWithATurnThatHasAName) {
  for (const char* body :
       {"{}", R"({"session_id": "s"})", R"({"request_id": "r"})"}) {
    EXPECT_EQ(BodyVerdict(body, {{"last-event-id", "3"}}),
              "FIELD_INVALID request_id")
        << body;
  }
  EXPECT_EQ(BodyVerdict(R"({"session_id": "s", "request_id": "r", "prompt": "a",
                        "echo": true, "logprobs": 1})"),
            "FIELD_INVALID echo");
}

TEST(ReadCompletion, KnowsWhichFieldsItIgnores) {
  EXPECT_THAT(
      ReadBody(R"({"user": "u", "mirostat": 2, "prompt": "a", "x": null})")
          ->ignored,
      ElementsAre("mirostat"));
}

TEST(ReadCompletion, AMisspeltFieldIsRefusedByName) {
  const std::pair<const char*, const char*> bodies[] = {
      {R"({"promt": "a"})", "FIELD_INVALID promt"},
      {R"({"prompt": "a", "maxTokens": 4})", "FIELD_INVALID maxTokens"},
      {R"({"prompt": "a", "sesion_id": "s"})", "FIELD_INVALID sesion_id"},
      {R"({"prompt": "a", "stream_options": {"include_usag": true}})",
       "FIELD_INVALID include_usag"},
      {R"({"prompt": "a", "received": {"seed": 1, "tokens": [1]}})",
       "FIELD_INVALID tokens"}};
  for (const auto& [body, verdict] : bodies) {
    EXPECT_EQ(BodyVerdict(body), verdict) << body;
  }
}

// Fields of OpenAI's and vLLM's endpoints that are not served here.
TEST(ReadCompletion, FieldsOfOthersAreNotTakenForMisspeltOnes) {
  for (const char* field : {"store",
                            "metadata",
                            "service_tier",
                            "modalities",
                            "audio",
                            "prediction",
                            "reasoning_effort",
                            "verbosity",
                            "parallel_tool_calls",
                            "web_search_options",
                            "safety_identifier",
                            "prompt_cache_key",
                            "use_beam_search",
                            "length_penalty",
                            "early_stopping",
                            "skip_special_tokens",
                            "spaces_between_special_tokens",
                            "truncate_prompt_tokens",
                            "prompt_logprobs",
                            "bad_words",
                            "add_special_tokens",
                            "guided_json",
                            "guided_regex",
                            "structured_outputs",
                            "kv_transfer_params",
                            "vllm_xargs",
                            "logits_processors",
                            "cache_salt",
                            "prompt_embeds",
                            "detokenize",
                            "stop_reason",
                            "include_reasoning",
                            "chat_template",
                            "messages",
                            "top_logprobs",
                            "max_completion_tokens",
                            "extra_body"}) {
    const auto request =
        ReadBody(absl::StrCat("{\"prompt\": \"a\", \"", field, "\": 1}"));
    EXPECT_TRUE(request.ok()) << field << request.status();
  }
}

TEST(ReadCompletion, WhatWasReceivedIsTheTurns) {
  const auto request =
      ReadBody(R"({"received": {"seed": -1, "token_ids": [5, 6]}})");
  ASSERT_TRUE(request.ok()) << request.status();
  const v1::Received& received = request->turns[0].received();
  EXPECT_EQ(received.seed(), UINT64_MAX);
  EXPECT_THAT(received.token_ids(), ElementsAre(5, 6));
  EXPECT_FALSE(ReadBody("{}")->turns[0].has_received());
  EXPECT_TRUE(
      ReadBody(R"({"received": {"seed": 1}})")->turns[0].has_received());
}

TEST(ReadCompletion, WhatWasReceivedIsOfOneChoiceAndSaysItsSeed) {
  EXPECT_EQ(BodyVerdict(R"({"received": 1})"), "FIELD_INVALID received");
  EXPECT_EQ(BodyVerdict(R"({"received": {"token_ids": [5]}})"),
            "FIELD_INVALID received.seed");
  EXPECT_EQ(BodyVerdict(R"({"received": {"seed": 1, "token_ids": ["a"]}})"),
            "FIELD_INVALID received.token_ids[0]");
  EXPECT_EQ(BodyVerdict(R"({"received": {"seed": 1}, "n": 2})"),
            "FIELD_INVALID received");
  EXPECT_EQ(BodyVerdict(R"({"received": {"seed": 1}, "prompt": ["a", "b"]})"),
            "FIELD_INVALID received");
  EXPECT_EQ(
      BodyVerdict(R"({"received": {"seed": 1}, "echo": true, "logprobs": 1})"),
      "FIELD_INVALID echo");
  EXPECT_EQ(BodyVerdict(R"({"received": {"seed": 1}, "session_id": "s",
                        "request_id": "r"})",
                        {{"last-event-id", "3"}}),
            "FIELD_INVALID received");
}

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
  EXPECT_THAT(status.message(), HasSubstr("message 1"));
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
