// The paths beside completions and sessions.

#include "server/http/endpoints.h"

#include <gmock/gmock.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tests/server/api/music_model.h"
#include "tests/server/exporter/scrape.h"
#include "tests/server/http/http_world.h"

namespace txl {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Ids = std::vector<int32_t>;
using Json = nlohmann::json;

TEST(Score, IsTheModelsOfEachTokenAfterAllBeforeIt) {
  HttpWorld world;
  const Json json =
      world.Post("/v1/score", {{"text", "abc"}, {"logprobs", 2}}).json();
  ASSERT_THAT(json["tokens"], SizeIs(3));
  EXPECT_FALSE(json["tokens"][0].contains("logprob"));
  const float b = world.rpc.runner.LogProbs(Ids{'a'})['b'];
  const float c = world.rpc.runner.LogProbs(Ids{'a', 'b'})['c'];
  EXPECT_FLOAT_EQ(json["tokens"][1]["logprob"].get<float>(), b);
  EXPECT_FLOAT_EQ(json["tokens"][2]["logprob"].get<float>(), c);
  EXPECT_NEAR(json["sum_logprob"].get<double>(), double{b} + double{c}, 1e-5);
  EXPECT_THAT(json["tokens"][2]["top_logprobs"], SizeIs(2));
  EXPECT_EQ(json["tokens"][2]["text"], "c");
}

TEST(Score, NamesIdsBehindTheAlternatives) {
  HttpWorld world;
  const Json json = world
                        .Post("/v1/score", {{"text", "ab"},
                                            {"logprobs", 1},
                                            {"logprob_token_ids", {9, 'x'}}})
                        .json();
  const Json& top = json["tokens"][1]["top_logprobs"];
  ASSERT_THAT(top, SizeIs(3));
  const std::vector<float> model = world.rpc.runner.LogProbs(Ids{'a'});
  EXPECT_EQ(top[0]["token_id"], world.rpc.runner.NextToken(Ids{'a'}));
  EXPECT_EQ(top[1]["token_id"], 9);
  EXPECT_EQ(top[2]["token_id"], 'x');
  EXPECT_FLOAT_EQ(top[2]["logprob"].get<float>(), model['x']);
  EXPECT_EQ(
      world.Post("/v1/score", {{"text", "ab"}, {"logprob_token_ids", {256}}})
          .outcome(),
      "400 FIELD_INVALID logprob_token_ids");
  EXPECT_EQ(
      world.Post("/v1/score", {{"text", "ab"}, {"logprob_token_ids", "x"}})
          .outcome(),
      "400 FIELD_INVALID logprob_token_ids");
}

TEST(Score, StandsBehindASessionThatStaysAsItIs) {
  HttpWorld world;
  world.rpc.MakeSession("s", {'a', 'b'});
  const Json json =
      world.Post("/v1/score", {{"session_id", "s"}, {"tokens", {'c'}}}).json();
  EXPECT_FLOAT_EQ(json["sum_logprob"].get<float>(),
                  world.rpc.runner.LogProbs(Ids{'a', 'b'})['c']);
  EXPECT_EQ(world.rpc.GetSession("s").position(), 2);
}

TEST(Score, OfAlternativesIsThatOfEachAlone) {
  HttpWorld world;
  const Json json =
      world
          .Post("/v1/score", {{"text", "ab"},
                              {"alternatives", {"cd", {101, 102}, "c"}},
                              {"return_tokens", true}})
          .json();
  ASSERT_THAT(json["scores"], SizeIs(3));
  const float c = world.rpc.runner.LogProbs(Ids{'a', 'b'})['c'];
  const float d = world.rpc.runner.LogProbs(Ids{'a', 'b', 'c'})['d'];
  const float e = world.rpc.runner.LogProbs(Ids{'a', 'b'})['e'];
  const float f = world.rpc.runner.LogProbs(Ids{'a', 'b', 'e'})['f'];
  EXPECT_NEAR(json["scores"][0]["sum_logprob"].get<double>(), c + d, 1e-5);
  EXPECT_NEAR(json["scores"][1]["sum_logprob"].get<double>(), e + f, 1e-5);
  EXPECT_NEAR(json["scores"][2]["sum_logprob"].get<double>(), c, 1e-5);
  EXPECT_EQ(json["scores"][0]["token_count"], 2);
  EXPECT_THAT(json["scores"][1]["tokens"], SizeIs(2));
}

TEST(Tokenize, GivesIdsAndTheirNumber) {
  HttpWorld world;
  const Json json =
      world
          .Post("/tokenize", {{"prompt", "hey"}, {"add_special_tokens", false}})
          .json();
  EXPECT_EQ(json["tokens"], Json({'h', 'e', 'y'}));
  EXPECT_EQ(json["count"], 3);
  EXPECT_EQ(json["max_model_len"], RequestLimits().prompt_tokens);
}

TEST(Tokenize, TakesAMidiFileInBase64) {
  HttpWorld world;
  world.rpc.facts.midi = MidiEncoder::Make(RemiVocabulary());
  const Json whole =
      world.Post("/tokenize", {{"midi", absl::Base64Escape(kOneNote)}}).json();
  EXPECT_EQ(whole["tokens"], Json(kOneNoteIds));
  EXPECT_EQ(whole["count"], 8);
  EXPECT_EQ(whole["left_out"], Json::array());
  const Json known =
      world.Post("/tokenize", {{"midi", absl::Base64Escape(kUnknownNote)}})
          .json();
  EXPECT_EQ(known["tokens"], Json(kOneNoteIds));
  EXPECT_EQ(known["left_out"],
            Json::array({{{"what", "Note On_109"}, {"count", 1}}}));
}

TEST(Tokenize, RefusesWhatIsNoMidiFileOfAModelOfMusic) {
  HttpWorld world;
  const auto post = [&](const Json& body) {
    const HttpAnswer answer = world.Post("/tokenize", body);
    return answer.outcome();
  };
  const std::string file = absl::Base64Escape(kOneNote);
  EXPECT_EQ(post({{"midi", file}}), "400 FIELD_INVALID midi");
  world.rpc.facts.midi = MidiEncoder::Make(RemiVocabulary());
  for (const Json& midi :
       {Json(""), Json("bm8gbXVzaWM="), Json(file.substr(0, 40)), Json("%%"),
        Json(7), Json({77, 84}), Json(absl::Base64Escape("MThd"))}) {
    EXPECT_EQ(post({{"midi", midi}}), "400 FIELD_INVALID midi") << midi;
  }
  EXPECT_EQ(post({{"midi", file}, {"prompt", "a"}}), "400 FIELD_INVALID midi");
  EXPECT_EQ(post({{"midi", nullptr}, {"prompt", "a"}}), "200");
  const std::string large(RequestLimits().prompt_bytes + 1, 'M');
  EXPECT_EQ(post({{"midi", absl::Base64Escape(large)}}), "400 OVER_LIMIT midi");
}

TEST(Detokenize, CallsAFieldAsTheBodyDoes) {
  HttpWorld world;
  const auto error =
      world.Post("/detokenize", {{"tokens", {'h', 999}}}).json()["error"];
  EXPECT_EQ(error["param"], "tokens");
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("tokens[1]: "));
}

TEST(Detokenize, GivesTheTextOfIds) {
  HttpWorld world;
  EXPECT_EQ(world.Post("/detokenize", {{"tokens", {'h', 'e', 'y'}}}).json(),
            Json({{"prompt", "hey"}}));
}

TEST(TokenizerInfo, NamesTheEndTokenThenTheStartToken) {
  HttpWorldOptions options;
  options.rpc.generation.end_tokens = {'.'};
  options.rpc.generation.start_tokens = {'^'};
  HttpWorld both(options);
  EXPECT_EQ(both.Get("/tokenizer_info").json()["eos_token"], ".");
  EXPECT_EQ(both.Get("/tokenizer_info").json()["bos_token"], "^");
  options.rpc.generation.end_tokens = {};
  HttpWorld one(options);
  EXPECT_EQ(one.Get("/tokenizer_info").json()["eos_token"], "^");
  HttpWorld none;
  EXPECT_EQ(none.Get("/tokenizer_info").json()["eos_token"], "\n");
}

TEST(TokenizerInfo, IsNotThereWithoutATokenizer) {
  HttpWorldOptions options;
  options.rpc.tokenizer = false;
  HttpWorld world(options);
  EXPECT_EQ(world.Get("/tokenizer_info").outcome(), "404 NOT_FOUND");
  // Ids are served all the same.
  const Json choice =
      world.Choice({{"prompt", {1, 2}}, {"max_tokens", 3}, {"logprobs", 1}});
  EXPECT_EQ(choice["text"], "");
  EXPECT_EQ(choice["logprobs"]["tokens"][0],
            absl::StrCat("token_id:", world.rpc.runner.NextToken(Ids{1, 2})));
}

TEST(Models, HasTheOneModelAndItsFacts) {
  HttpWorld world;
  const Json json = world.Get("/v1/models").json();
  EXPECT_EQ(json["object"], "list");
  ASSERT_THAT(json["data"], SizeIs(1));
  const Json& model = json["data"][0];
  EXPECT_EQ(model["id"], "fake");
  EXPECT_EQ(model["object"], "model");
  EXPECT_TRUE(model["created"].is_number_integer());
  EXPECT_EQ(model["max_model_len"], RequestLimits().prompt_tokens);
  EXPECT_EQ(model["txl"]["fingerprint"], "f00d");
  EXPECT_EQ(model["txl"]["limits"]["max_logprobs"], RequestLimits().logprobs);
  EXPECT_EQ(world.Get("/v1/models/fake").json(), model);
}

TEST(Models, AnotherOneIsNotFoundAndTheRightOneIsNamed) {
  HttpWorld world;
  for (const char* path : {"/v1/models/gpt-4", "/v1/models/", "/v1/models/a/b",
                           "/v1/models/Fake"}) {
    const HttpAnswer answer = world.Get(path);
    EXPECT_EQ(answer.outcome(), "404 model_not_found model") << path;
    EXPECT_THAT(answer.json()["error"]["message"].get<std::string>(),
                HasSubstr("\"fake\""));
  }
  EXPECT_EQ(world.Send("DELETE", "/v1/models/fake").outcome(),
            "405 METHOD_NOT_ALLOWED");
}

TEST(Status, SaysWhatGetServerStatusSays) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  world.Complete({{"prompt", "ab"}, {"max_tokens", 4}});
  ASSERT_TRUE(world.ComesToRest());
  const Json json = world.Get("/v1/status").json();
  EXPECT_EQ(json["state"], "SERVER_STATE_READY");
  EXPECT_EQ(json["sessions_idle"], 1);
  EXPECT_EQ(json["turns_started"], 1);
  EXPECT_EQ(json["tokens_delivered"], 4);
  EXPECT_EQ(json["turns_finished"], Json({{"OK", 1}}));
}

TEST(Health, FollowsTheLifeOfTheServer) {
  HttpWorldOptions options;
  options.rpc.ready = false;
  HttpWorld world(options);
  EXPECT_EQ(world.Get("/health").outcome(), "503 NOT_READY");
  EXPECT_NE(world.Get("/health").header("retry-after-ms"), "absent");
  EXPECT_EQ(world.Complete({{"prompt", "a"}}).outcome(), "503 NOT_READY");
  world.rpc.lifecycle.SetReady();
  EXPECT_EQ(world.Get("/health").outcome(), "200");
  EXPECT_EQ(world.Get("/health").json()["status"], "ok");
  world.rpc.lifecycle.SetDraining();
  EXPECT_EQ(world.Get("/health").outcome(), "503 DRAINING");
  EXPECT_EQ(world.Complete({{"prompt", "a"}}).outcome(), "503 DRAINING");
  // Who looks after the server still can.
  EXPECT_EQ(world.Get("/v1/status").json()["state"], "SERVER_STATE_DRAINING");
  EXPECT_EQ(world.Get("/metrics").status, 200);
}

TEST(ADrainedTenant, IsToldToComeBackByEveryPathThatStartsATurn) {
  HttpWorld world;
  world.rpc.MakeSession("s", {1, 2, 3});
  world.rpc.lifecycle.SetTenantDraining(kDefaultTenant, true);
  const std::vector<std::pair<std::string, Json>> turns = {
      {"/v1/completions", {{"prompt", "a"}}},
      {"/v1/completions", {{"prompt", "a"}, {"stream", true}}},
      {"/v1/completions", {{"prompt", "a"}, {"n", 2}}},
      {"/v1/completions", {{"prompt", "a"}, {"echo", true}, {"logprobs", 1}}},
      {"/v1/completions", {{"prompt", "a"}, {"session_id", "s"}}},
      {"/v1/score", {{"text", "ab"}}},
      {"/v1/sessions/s/append", {{"text", "a"}}}};
  for (const auto& [path, body] : turns) {
    const HttpAnswer answer = world.Post(path, body);
    EXPECT_EQ(answer.outcome(), "503 TENANT_DRAINING") << path << body;
    EXPECT_EQ(answer.header("retry-after"), "1") << path << body;
    EXPECT_EQ(answer.header("retry-after-ms"), "1000") << path << body;
  }
  EXPECT_EQ(world.rpc.GetSession("s").position(), 3);
  // Sessions can be looked at and ended, and the server itself is well.
  EXPECT_EQ(world.Get("/v1/sessions/s").status, 200);
  EXPECT_EQ(world.Send("DELETE", "/v1/sessions/s").status, 200);
  EXPECT_EQ(world.Get("/health").status, 200);
  world.rpc.lifecycle.SetTenantDraining(kDefaultTenant, false);
  EXPECT_EQ(world.Complete({{"prompt", "a"}, {"max_tokens", 1}}).status, 200);
}

TEST(Health, HasAHeadWithoutABody) {
  HttpWorld world;
  const HttpAnswer answer = world.Send("HEAD", "/health");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "");
  EXPECT_NE(answer.header("content-length"), "0");
}

TEST(MetricsPath, IsWhatPrometheusReads) {
  HttpWorld world;
  world.Complete({{"prompt", "ab"}, {"max_tokens", 4}});
  ASSERT_TRUE(world.ComesToRest());
  const HttpAnswer answer = world.Get("/metrics");
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.header("content-type"), HasSubstr("version=0.0.4"));
  const testing::Scrape scrape = testing::ParseScrape(answer.body);
  EXPECT_THAT(scrape.mistakes, SizeIs(0));
  testing::ExpectConserved(scrape);
}

TEST(Paths, TellWhichMethodsTheyTake) {
  HttpWorld world;
  const std::vector<std::pair<std::string, std::string>> allowed = {
      {"/v1/completions", "POST"},    {"/v1/chat/completions", "POST"},
      {"/v1/models", "GET"},          {"/v1/status", "GET"},
      {"/v1/score", "POST"},          {"/health", "GET"},
      {"/tokenize", "POST"},          {"/detokenize", "POST"},
      {"/tokenizer_info", "GET"},     {"/metrics", "GET"},
      {"/v1/sessions", "GET, POST"},  {"/v1/sessions/s", "GET, DELETE"},
      {"/v1/sessions/s/fork", "POST"}};
  for (const auto& [path, methods] : allowed) {
    const HttpAnswer answer = world.Send("PUT", path);
    EXPECT_EQ(answer.outcome(), "405 METHOD_NOT_ALLOWED") << path;
    EXPECT_EQ(answer.header("allow"), methods) << path;
  }
}

TEST(Paths, TellWhatTheyTakeWhereOptionsAsks) {
  HttpWorld world;
  const std::vector<std::pair<std::string, std::string>> allowed = {
      {"/", "GET"},
      {"*", "GET, POST, DELETE"},
      {"/v1/completions", "POST"},
      {"/v1/models/fake", "GET"},
      {"/v1/sessions/s", "GET, DELETE"}};
  for (const auto& [path, methods] : allowed) {
    const HttpAnswer answer = world.Send("OPTIONS", path);
    EXPECT_EQ(answer.status, 204) << path;
    EXPECT_EQ(answer.header("allow"), methods) << path;
    // A 204 has no body, so no length either (RFC 9110, 8.6).
    EXPECT_EQ(answer.header("content-length"), "absent") << path;
  }
}

TEST(Paths, AnswerWithTheRequestsOwnId) {
  HttpWorld world;
  const auto id_of = [&](const std::string& sent) {
    RawClient client(world.address());
    client.Send(RequestBytes("GET", "/health", "", {{"x-request-id", sent}}));
    return client.ReadAnswer().header("x-request-id");
  };
  EXPECT_EQ(id_of("mine-7"), "mine-7");
  // What could be more than an id is not repeated.
  EXPECT_THAT(id_of("a b"), ::testing::StartsWith("req-"));
  EXPECT_THAT(id_of(std::string(65, 'a')), ::testing::StartsWith("req-"));
}

}  // namespace
}  // namespace txl
