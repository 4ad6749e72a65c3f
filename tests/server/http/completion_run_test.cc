// Answers of POST /v1/completions that come whole: against the fake model's
// own arithmetic and against the same turn over gRPC.
#include "server/http/completion_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "model/text/utf8.h"
#include "server/base/error.h"
#include "tests/model/sampling/some_kinds.h"
#include "tests/server/http/http_world.h"
#include "tests/server/rpc/rpc_world.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Ids = std::vector<int32_t>;
using Json = nlohmann::json;

// Bytes as a text of the fake model's vocabulary.
Ids Bytes(const std::string& text) { return Ids(text.begin(), text.end()); }

// The decimal of a float32 in JSON is that of the double it becomes.
Json Decimal(float logprob) { return static_cast<double>(logprob); }

TEST(Completions, AnswerHasWhatOpenAiSaysOfOne) {
  HttpWorld world;
  const HttpAnswer answer =
      world.Complete({{"model", "fake"}, {"prompt", "ab"}, {"max_tokens", 3}});
  ASSERT_EQ(answer.outcome(), "200");
  EXPECT_EQ(answer.header("content-type"), "application/json");
  EXPECT_THAT(answer.header("x-request-id"), StartsWith("req-"));
  EXPECT_EQ(answer.header("x-content-type-options"), "nosniff");
  const Json json = answer.json();
  EXPECT_THAT(json["id"].get<std::string>(), StartsWith("cmpl-"));
  EXPECT_EQ(json["object"], "text_completion");
  EXPECT_EQ(json["model"], "fake");
  EXPECT_EQ(json["system_fingerprint"], "f00d");
  EXPECT_TRUE(json["created"].is_number_integer());
  EXPECT_EQ(json["usage"],
            Json({{"prompt_tokens", 2},
                  {"completion_tokens", 3},
                  {"total_tokens", 5},
                  {"prompt_tokens_details", {{"cached_tokens", 0}}}}));
  ASSERT_THAT(json["choices"], SizeIs(1));
  EXPECT_EQ(json["choices"][0]["index"], 0);
  EXPECT_EQ(json["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(json["choices"][0]["logprobs"], Json());
  EXPECT_FALSE(json["choices"][0].contains("token_ids"));
}

TEST(Completions, GiveTheModelsTokensAndTheTextThatGrpcGives) {
  HttpWorld world;
  const Json choice = world.Choice(
      {{"prompt", "ab"}, {"max_tokens", 40}, {"return_token_ids", true}});
  EXPECT_EQ(choice["token_ids"], Json(world.rpc.runner.Continue({97, 98}, 40)));
  EXPECT_EQ(choice["text"],
            world.rpc.Generate("text: 'ab' stop { max_tokens: 40 }").text());
}

TEST(Completions, TakeTokenIdsAsPrompt) {
  HttpWorld world;
  const Json choice = world.Choice(
      {{"prompt", {1, 2, 3}}, {"max_tokens", 5}, {"return_token_ids", true}});
  EXPECT_EQ(choice["token_ids"], Json(world.rpc.runner.Continue({1, 2, 3}, 5)));
}

TEST(Completions, HaveSixteenTokensWhereNothingIsSaid) {
  HttpWorld world;
  const Json json = world.Complete({{"prompt", "ab"}}).json();
  EXPECT_EQ(json["usage"]["completion_tokens"], 16);
}

TEST(Completions, TakeNullForAbsent) {
  HttpWorld world;
  const HttpAnswer answer = world.Complete({{"prompt", "ab"},
                                            {"max_tokens", nullptr},
                                            {"seed", nullptr},
                                            {"logprobs", nullptr},
                                            {"stop", nullptr},
                                            {"stream", nullptr},
                                            {"suffix", nullptr},
                                            {"temperature", nullptr}});
  ASSERT_EQ(answer.outcome(), "200");
  EXPECT_EQ(answer.json()["usage"]["completion_tokens"], 16);
}

TEST(Completions, IgnoreAFieldThatNobodyKnowsAndLogItsName) {
  HttpWorld world;
  EXPECT_EQ(world.Complete({{"prompt", "a"}, {"mirostat", 2}}).outcome(),
            "200");
  EXPECT_TRUE(world.rpc.Logged("mirostat"));
}

TEST(Completions, LogprobsAreTheModelsAndOneDecimalInBothLists) {
  HttpWorld world;
  const Json lists = world.Choice(
      {{"prompt", "ab"}, {"max_tokens", 6}, {"logprobs", 3}})["logprobs"];
  const Stream same = world.rpc.Generate(
      "text: 'ab' stop { max_tokens: 6 } output { logprobs: 3 }");
  Ids seen = {97, 98};
  for (size_t i = 0; i < 6; ++i) {
    const v1::Token& token = same.tokens[i];
    const std::vector<float> model = world.rpc.runner.LogProbs(seen);
    const int32_t id = world.rpc.runner.NextToken(seen);
    EXPECT_EQ(lists["token_logprobs"][i], Decimal(token.logprob()));
    EXPECT_FLOAT_EQ(lists["token_logprobs"][i].get<float>(), model[id]);
    const Json& top = lists["top_logprobs"][i];
    const std::string name = lists["tokens"][i];
    ASSERT_TRUE(top.contains(name)) << top;
    // As text: who compares strings finds the same one.
    EXPECT_EQ(top[name].dump(), lists["token_logprobs"][i].dump());
    seen.push_back(id);
  }
  for (const char* list : {"tokens", "top_logprobs", "text_offset"}) {
    EXPECT_THAT(lists[list], SizeIs(6)) << list;
  }
}

TEST(Completions, TokensAsIdsKeepAllAlternativesApart) {
  HttpWorld world;
  const Json lists =
      world.Choice({{"prompt", "ab"},
                    {"max_tokens", 1},
                    {"logprobs", 5},
                    {"return_tokens_as_token_ids", true}})["logprobs"];
  const int32_t id = world.rpc.runner.NextToken(Ids{97, 98});
  EXPECT_EQ(lists["tokens"], Json({absl::StrCat("token_id:", id)}));
  EXPECT_THAT(lists["top_logprobs"][0], SizeIs(5));
  const std::vector<float> model = world.rpc.runner.LogProbs(Ids{97, 98});
  for (const auto& [name, logprob] : lists["top_logprobs"][0].items()) {
    ASSERT_THAT(name, StartsWith("token_id:"));
    EXPECT_FLOAT_EQ(logprob.get<float>(), model[std::stoul(name.substr(9))]);
  }
}

// What lm_eval reads: an entry for each token of the prompt and one more.
void ExpectScored(HttpWorld& world, const std::string& prompt,
                  const Json& lists, size_t entries) {
  for (const char* list :
       {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
    ASSERT_THAT(lists[list], SizeIs(entries)) << list;
  }
  EXPECT_EQ(lists["token_logprobs"][0], Json());
  EXPECT_EQ(lists["top_logprobs"][0], Json());
  const Ids ids = Bytes(prompt);
  for (size_t i = 0; i < prompt.size(); ++i) {
    EXPECT_EQ(lists["tokens"][i], prompt.substr(i, 1));
    EXPECT_EQ(lists["text_offset"][i], i);
    if (i == 0) continue;
    const Ids before(ids.begin(), ids.begin() + static_cast<int>(i));
    const std::vector<float> model = world.rpc.runner.LogProbs(before);
    EXPECT_FLOAT_EQ(lists["token_logprobs"][i].get<float>(), model[ids[i]]);
    const std::string greedy = lists["top_logprobs"][i].dump();
    EXPECT_EQ(lists["top_logprobs"][i][prompt.substr(i, 1)],
              lists["token_logprobs"][i])
        << greedy;
  }
}

TEST(Completions, EchoWithLogprobsHasAnEntryForEachTokenOfThePromptAndOneMore) {
  HttpWorld world;
  const std::string prompt = "the quick brown fox";
  const Json choice = world.Choice({{"prompt", prompt},
                                    {"max_tokens", 1},
                                    {"logprobs", 1},
                                    {"temperature", 0},
                                    {"seed", 1234},
                                    {"echo", true}});
  ExpectScored(world, prompt, choice["logprobs"], prompt.size() + 1);
  EXPECT_THAT(choice["text"].get<std::string>(), StartsWith(prompt));
  EXPECT_EQ(choice["logprobs"]["text_offset"].back(), prompt.size());
}

TEST(Completions, EchoWithLogprobsFeedsThePromptOnce) {
  HttpWorld world;
  const std::string prompt = "the quick brown fox";
  EXPECT_EQ(world
                .Complete({{"prompt", prompt},
                           {"max_tokens", 1},
                           {"logprobs", 1},
                           {"echo", true}})
                .outcome(),
            "200");
  EXPECT_TRUE(world.ComesToRest());
  // The prompt's, and one from which the token is drawn.
  EXPECT_LE(world.rpc.metrics.Get().rows_run,
            static_cast<int64_t>(prompt.size()) + 1);
}

TEST(Completions, EchoWithLogprobsOfNoPromptGoesOnWithTheText) {
  HttpWorldOptions options;
  options.rpc.generation.start_tokens = {1};
  HttpWorld world(options);
  world.rpc.MakeSession("s", {1, 'a'});
  for (const char* session : {"", "s"}) {
    const Ids before = *session == '\0' ? Ids{1} : Ids{1, 'a'};
    const HttpAnswer answer = world.Complete({{"session_id", session},
                                              {"prompt", ""},
                                              {"max_tokens", 2},
                                              {"temperature", 0},
                                              {"logprobs", 1},
                                              {"echo", true},
                                              {"return_token_ids", true}});
    ASSERT_EQ(answer.outcome(), "200") << session;
    EXPECT_EQ(answer.json()["choices"][0]["token_ids"],
              Json(world.rpc.runner.Continue(before, 2)));
  }
}

TEST(Completions, EchoHasTheEntryOfAnEndTokenToo) {
  const std::string prompt = "the end";
  HttpWorldOptions options;
  {
    HttpWorld probe;
    options.rpc.generation.end_tokens = {
        probe.rpc.runner.NextToken(Bytes(prompt))};
  }
  HttpWorld world(options);
  const Json choice = world.Choice({{"prompt", {Bytes(prompt)}},
                                    {"max_tokens", 1},
                                    {"logprobs", 1},
                                    {"echo", true}});
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["text"], prompt);
  ExpectScored(world, prompt, choice["logprobs"], prompt.size() + 1);
  EXPECT_FLOAT_EQ(choice["logprobs"]["token_logprobs"].back().get<float>(),
                  world.rpc.runner.LogProbs(
                      Bytes(prompt))[options.rpc.generation.end_tokens[0]]);
}

TEST(Completions, EchoWithoutATokenScoresThePromptAlone) {
  HttpWorld world;
  const Json json = world
                        .Complete({{"prompt", "hello"},
                                   {"max_tokens", 0},
                                   {"logprobs", 0},
                                   {"echo", true}})
                        .json();
  const Json& choice = json["choices"][0];
  EXPECT_EQ(choice["text"], "hello");
  EXPECT_EQ(choice["finish_reason"], "length");
  ExpectScored(world, "hello", choice["logprobs"], 5);
  EXPECT_EQ(json["usage"]["prompt_tokens"], 5);
  EXPECT_EQ(json["usage"]["completion_tokens"], 0);
}

TEST(Completions, EchoOfIdsIsTheirText) {
  HttpWorld world;
  const Json choice = world.Choice(
      {{"prompt", Bytes("hey")}, {"max_tokens", 1}, {"echo", true}});
  EXPECT_THAT(choice["text"].get<std::string>(), StartsWith("hey"));
  EXPECT_EQ(choice["logprobs"], Json());
}

// Where the texts of the first choice's tokens begin, in code points.
Json Offsets(HttpWorld& world, Json body) {
  body["logprobs"] = 0;
  return world.Choice(body)["logprobs"]["text_offset"];
}

// The same of tokens behind a text of so many code points, by what a stream of
// them makes certain.
Json OffsetsBehind(int64_t offset, const std::vector<int32_t>& ids) {
  Json offsets = Json::array();
  const auto detokenizer = ByteVocabulary().NewDetokenizer();
  for (const int32_t id : ids) {
    offsets.push_back(offset);
    offset += CodePoints(detokenizer->Add(id));
  }
  return offsets;
}

TEST(Completions, OffsetsCountFromThePromptsBeginEchoedOrNot) {
  HttpWorld world;
  const std::string prompt = "\u00e9\u00e9t";
  const Ids ids = *world.rpc.vocabulary.Encode(prompt);
  const Json expected = OffsetsBehind(3, world.rpc.runner.Continue(ids, 8));
  Json body = {{"prompt", prompt}, {"max_tokens", 8}};
  EXPECT_EQ(Offsets(world, body), expected);
  body["prompt"] = ids;
  EXPECT_EQ(Offsets(world, body), expected);
  body["n"] = 2;
  EXPECT_EQ(Offsets(world, body), expected);
  body["n"] = 1;
  body["echo"] = true;
  Json echoed = OffsetsBehind(0, ids);
  echoed.insert(echoed.end(), expected.begin(), expected.end());
  EXPECT_EQ(Offsets(world, body), echoed);
}

TEST(Completions, OffsetsDoNotDependOnStopTexts) {
  HttpWorld world;
  const std::vector<int32_t> ids = world.rpc.runner.Continue(Bytes("hey"), 12);
  const std::string text = *world.rpc.vocabulary.Decode(ids);
  Json body = {{"prompt", "hey"}, {"max_tokens", 12}};
  const Json plain = OffsetsBehind(3, ids);
  ASSERT_EQ(Offsets(world, body), plain);
  // All of it is held back until the last token shows that it is another text.
  body["stop"] = {text.substr(0, text.size() - 1) + "\n\n"};
  EXPECT_EQ(Offsets(world, body), plain);
  body["stream"] = true;
  body["logprobs"] = 0;
  const auto chunks = world.Complete(body).chunks();
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(chunks[i]["choices"][0]["logprobs"]["text_offset"],
              Json({plain[i]}));
  }
  // It is found: its tokens have their places all the same.
  body["stream"] = false;
  body["stop"] = {text};
  Json found = Offsets(world, body);
  ASSERT_GT(found.size(), 1u);
  EXPECT_EQ(found, Json(std::vector<Json>(plain.begin(),
                                          plain.begin() + found.size())));
}

TEST(Completions, EchoOfIdsOutsideTheVocabularyIsRefusedAsTheTurnIs) {
  HttpWorld world;
  const int64_t size = world.rpc.vocabulary.size();
  for (const int64_t id :
       {size, size + 1'000, int64_t{1} << 31, (int64_t{1} << 32) - 1}) {
    for (const Json& more :
         {Json({{"stream", true}}), Json({{"n", 2}}), Json({{"max_tokens", 0}}),
          Json({{"logprobs", 1}}), Json::object()}) {
      Json body = {{"prompt", {65, id}}, {"max_tokens", 1}};
      body.update(more);
      if (more.value("max_tokens", 1) > 0) {
        EXPECT_EQ(world.Complete(body).outcome(), "400 FIELD_INVALID prompt");
      }
      body["echo"] = true;
      EXPECT_EQ(world.Complete(body).outcome(), "400 FIELD_INVALID prompt")
          << body;
    }
  }
  EXPECT_EQ(world.Complete({{"prompt", "a"}, {"max_tokens", 1}}).outcome(),
            "200");
}

TEST(Completions, ChoicesOfManyPromptsComePromptByPrompt) {
  HttpWorld world;
  const Json json = world
                        .Complete({{"prompt", {"ab", "cde"}},
                                   {"n", 2},
                                   {"max_tokens", 4},
                                   {"return_token_ids", true}})
                        .json();
  ASSERT_THAT(json["choices"], SizeIs(4));
  for (size_t i = 0; i < 4; ++i) {
    const Ids prompt = Bytes(i < 2 ? "ab" : "cde");
    EXPECT_EQ(json["choices"][i]["index"], i);
    EXPECT_EQ(json["choices"][i]["token_ids"],
              Json(world.rpc.runner.Continue(prompt, 4)));
  }
  // A prompt counts once.
  EXPECT_EQ(json["usage"]["prompt_tokens"], 5);
  EXPECT_EQ(json["usage"]["completion_tokens"], 16);
}

// Seeds with which the device was asked to sample, in the slots of a world.
std::multiset<uint64_t> Seeds(HttpWorld& world, int32_t slots) {
  std::multiset<uint64_t> seeds;
  for (int32_t slot = 0; slot < slots; ++slot) {
    seeds.insert(world.rpc.runner.sampling(slot).params.seed);
  }
  return seeds;
}

// Seeds of the choices of a request that has four and runs them all at once.
std::multiset<uint64_t> SeedsOfFour(const Json& body) {
  HttpWorldOptions options;
  options.rpc.generation.start_tokens = {1};
  HttpWorld world(options);  // four slots
  world.rpc.runner.Hold();
  RawClient client = world.Ask("/v1/completions", body);
  EXPECT_TRUE(Eventually([&] { return world.rpc.store->counts().busy == 4; }));
  world.rpc.runner.Release();
  EXPECT_EQ(client.ReadAnswer().header("x-txl-seed"), "70");
  return Seeds(world, 4);
}

TEST(Completions, EveryPromptDrawsWithTheSeedAsItDoesAlone) {
  EXPECT_THAT(SeedsOfFour({{"prompt", {"ab", "cd", "ef", "gh"}},
                           {"seed", 70},
                           {"max_tokens", 50}}),
              ElementsAre(70, 70, 70, 70));
}

TEST(Completions, EachChoiceOfAPromptDrawsWithTheSeedAndItsNumber) {
  EXPECT_THAT(SeedsOfFour({{"n", 4}, {"seed", 70}, {"max_tokens", 50}}),
              ElementsAre(70, 71, 72, 73));
}

TEST(Completions, ANegativeSeedIsItsTwosComplement) {
  HttpWorldOptions options;
  options.rpc.runner.slots = 1;
  HttpWorld world(options);
  EXPECT_EQ(world.Complete({{"prompt", "a"}, {"seed", -1}, {"max_tokens", 1}})
                .header("x-txl-seed"),
            "18446744073709551615");
  EXPECT_THAT(Seeds(world, 1), ElementsAre(18446744073709551615u));
}

TEST(Completions, BestOfDrawsMoreThanItReturns) {
  HttpWorld world;
  const Json json =
      world
          .Complete(
              {{"prompt", "ab"}, {"n", 2}, {"best_of", 3}, {"max_tokens", 4}})
          .json();
  ASSERT_THAT(json["choices"], SizeIs(2));
  EXPECT_EQ(json["choices"][1]["index"], 1);
  EXPECT_EQ(json["usage"]["completion_tokens"], 12);
}

TEST(Completions, AStopTokenEndsAChoice) {
  HttpWorld world;
  const Ids ids = world.rpc.runner.Continue({97, 98}, 8);
  const Json choice = world.Choice({{"prompt", "ab"},
                                    {"max_tokens", 8},
                                    {"return_token_ids", true},
                                    {"stop_token_ids", {ids[4]}}});
  EXPECT_EQ(choice["finish_reason"], "stop");
  const size_t first = static_cast<size_t>(
      std::find(ids.begin(), ids.end(), ids[4]) - ids.begin());
  EXPECT_THAT(choice["token_ids"], SizeIs(first + 1));
}

TEST(Completions, ACountedTokenEndsAChoiceAtItsLastOccurrence) {
  HttpWorld world;
  const Ids ids = world.rpc.runner.Continue({97, 98}, 12);
  const auto times = std::count(ids.begin(), ids.begin() + 9, ids[8]);
  const Json choice =
      world.Choice({{"prompt", "ab"},
                    {"max_tokens", 12},
                    {"return_token_ids", true},
                    {"stop_token_count", {{"id", ids[8]}, {"count", times}}}});
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["token_ids"].get<Ids>(), Ids(ids.begin(), ids.begin() + 9));
}

TEST(Completions, OnlyAllowedTokensAreDrawn) {
  HttpWorld world;
  const Json choice = world.Choice({{"prompt", "ab"},
                                    {"max_tokens", 20},
                                    {"allowed_token_ids", {'x', 'y'}}});
  EXPECT_EQ(choice["text"].get<std::string>().find_first_not_of("xy"),
            std::string::npos);
  EXPECT_THAT(choice["text"].get<std::string>(), SizeIs(20));
}

TEST(Completions, TokensFollowTheKindsOfTheModel) {
  HttpWorldOptions options;
  const auto kinds = SomeTable(256);
  options.rpc.runner.kinds = kinds;
  HttpWorld world(options);
  const auto breaks = [&](bool follow) {
    const Json choice = world.Choice({{"prompt", "ab"},
                                      {"max_tokens", 60},
                                      {"follow_kinds", follow},
                                      {"return_token_ids", true}});
    Ids ids = choice["token_ids"].get<Ids>();
    EXPECT_THAT(ids, SizeIs(60));
    ids.insert(ids.begin(), 'b');
    int broken = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const KindRule& rule = kinds->After(ids[i]);
      const bool may = HoldsKind(rule.next, kinds->KindOf(ids[i + 1]));
      broken += rule.restricts != 0 && !may ? 1 : 0;
    }
    return broken;
  };
  EXPECT_EQ(breaks(true), 0);
  EXPECT_GT(breaks(false), 0);
  const Json model = world.Get("/v1/models").json()["data"][0]["txl"];
  EXPECT_EQ(model["token_kinds"], Json({"A", "B", "C", "D"}));
  EXPECT_EQ(model["default_sampling"]["follow_kinds"], false);
}

// Also where the prompt is scored: by itself, in a session, or once for all.
TEST(Completions, NamedIdsHaveTheirLogprobsAtEveryPlace) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  for (const Json& more :
       {Json({{"n", 1}}), Json({{"n", 2}}), Json({{"session_id", "s"}}),
        Json({{"max_tokens", 0}})}) {
    Json body = {{"prompt", "abc"},
                 {"max_tokens", 2},
                 {"echo", true},
                 {"return_tokens_as_token_ids", true},
                 {"logprob_token_ids", {'x', 300 - 256}}};
    body.update(more);
    const Json lists = world.Choice(body)["logprobs"];
    const size_t places = 3 + body["max_tokens"].get<size_t>();
    ASSERT_THAT(lists["top_logprobs"], SizeIs(places)) << more;
    Ids before = {'a'};
    for (size_t i = 1; i < places; ++i) {
      const std::vector<float> model = world.rpc.runner.LogProbs(before);
      for (const int32_t id : {int32_t{'x'}, 300 - 256}) {
        EXPECT_FLOAT_EQ(lists["top_logprobs"][i][absl::StrCat("token_id:", id)]
                            .get<float>(),
                        model[id])
            << more;
      }
      before.push_back(
          std::stoi(lists["tokens"][i].get<std::string>().substr(9)));
    }
  }
}

TEST(Completions, AStopTextEndsAChoiceAndIsNotShown) {
  HttpWorld world;
  const Ids ids = world.rpc.runner.Continue({97}, 400);
  size_t at = 1;
  while (ids[at] < 'A' || ids[at] > 'z') ++at;
  const std::string stop(1, static_cast<char>(ids[at]));
  const Json body = {{"prompt", "a"}, {"max_tokens", 400}, {"stop", stop}};
  const Json choice = world.Choice(body);
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["text"].get<std::string>().find(stop), std::string::npos);
  EXPECT_EQ(choice["text"],
            world.rpc
                .Generate(absl::StrCat("text: 'a' stop { max_tokens: 400 "
                                       "stop_texts: '",
                                       stop, "' }"))
                .text());
  Json shown = body;
  shown["include_stop_str_in_output"] = true;
  EXPECT_EQ(world.Choice(shown)["text"],
            choice["text"].get<std::string>() + stop);
}

TEST(Completions, ALargeBodyIsReadAsASmallOneIs) {
  HttpWorld world;
  const std::string prompt(6000, 'a');  // more than is read at once
  const HttpAnswer answer = world.Complete(
      {{"prompt", prompt}, {"max_tokens", 3}, {"return_token_ids", true}});
  ASSERT_EQ(answer.outcome(), "200");
  EXPECT_EQ(answer.json()["usage"]["prompt_tokens"], 6000);
  EXPECT_EQ(answer.json()["choices"][0]["token_ids"],
            Json(world.rpc.runner.Continue(Bytes(prompt), 3)));
}

TEST(Completions, AnErrorSaysOfWhichPromptItIs) {
  HttpWorld world;
  const auto error = [&world](const Json& body) {
    const Json answer = world.Complete(body).json()["error"];
    return answer["param"].get<std::string>() + "; " +
           answer["message"].get<std::string>();
  };
  const Json bad = {1, 2, 999};
  EXPECT_THAT(error({{"prompt", {"A", bad}}}),
              StartsWith("prompt; prompt[1][2]: token id 999"));
  EXPECT_THAT(error({{"prompt", {"A", bad}}, {"best_of", 2}, {"n", 1}}),
              StartsWith("prompt; prompt[1][2]: token id 999"));
  EXPECT_THAT(error({{"prompt", bad}}),
              StartsWith("prompt; prompt[2]: token id 999"));
  EXPECT_EQ(error({{"prompt", ""}, {"echo", true}, {"max_tokens", 0}}),
            "prompt; must not be empty");
}

TEST(Completions, LeaveNoSessionBehind) {
  HttpWorld world;
  EXPECT_EQ(world.Complete({{"prompt", {"a", "b", "c"}}, {"n", 4}}).outcome(),
            "200");
  EXPECT_TRUE(world.ComesToRest());
  EXPECT_EQ(world.rpc.store->counts().idle, 0);
}

TEST(Completions, AFailedStepIsAnErrorAndTheServerGoesOn) {
  HttpWorld world;
  world.rpc.runner.FailStep(0, absl::InternalError("the device"));
  EXPECT_EQ(world.Complete({{"prompt", "a"}}).outcome(), "500 STEP_FAILED");
  EXPECT_EQ(world.Complete({{"prompt", "a"}}).outcome(), "200");
}

// What TurnBehind makes of a turn scored at `position`: it, or the reason.
std::string Behind(int64_t position, const std::string& turn) {
  v1::ScoreResponse scores;
  scores.set_position(position);
  const auto made = TurnBehind(scores, Proto<v1::GenerateRequest>(turn));
  return made.ok() ? made->ShortDebugString() : ReasonOf(made.status());
}

TEST(TurnBehind, WantsTheSessionWhereItWasScored) {
  EXPECT_EQ(Behind(0, "session_id: 's'"),
            "session_id: \"s\" expected_position: 0");
  EXPECT_EQ(Behind(7, "session_id: 's' text: 'a'"),
            "session_id: \"s\" text: \"a\" expected_position: 7");
}

TEST(TurnBehind, ObeysTheClientsOwnExpectation) {
  EXPECT_EQ(Behind(7, "session_id: 's' expected_position: 7"),
            "session_id: \"s\" expected_position: 7");
  EXPECT_EQ(Behind(7, "session_id: 's' expected_position: 8"),
            "POSITION_MISMATCH");
  EXPECT_EQ(Behind(7, "session_id: 's' expected_position: 0"),
            "POSITION_MISMATCH");
}

TEST(TurnBehind, WithoutASessionIsAsItWas) {
  EXPECT_EQ(Behind(0, "text: 'a'"), "text: \"a\"");
}

}  // namespace

}  // namespace txl
