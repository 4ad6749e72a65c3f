#include "server/rpc/convert_input.h"

#include <cmath>

#include "tests/server/rpc/convert_fixture.h"

namespace txl {
namespace {

using Ids = std::vector<int32_t>;

GenerateParams Read(const std::string& request,
                    const ModelFacts& facts = ByteModel(),
                    const RequestLimits& limits = {}) {
  const absl::StatusOr<GenerateParams> params =
      ReadGenerate(FromText<v1::GenerateRequest>(request), facts, limits);
  EXPECT_TRUE(params.ok()) << params.status() << " for " << request;
  return params.value_or(GenerateParams{});
}

TEST(ReadGenerate, OfAnEmptyRequestHasTheDefaultsOfTheApi) {
  const GenerateParams params = Read("");
  EXPECT_EQ(params.session_id, "");
  EXPECT_FALSE(params.input.has_value());
  EXPECT_EQ(params.sampling.temperature, 1);
  EXPECT_EQ(params.sampling.penalty_window, 64);
  EXPECT_EQ(params.sampling.min_tokens, 0);
  EXPECT_EQ(params.stop.max_tokens, 128);
  EXPECT_TRUE(params.stop.stop_texts.empty());
  EXPECT_FALSE(params.stop.ignore_end_token);
  EXPECT_EQ(params.output.top_logprobs, 0);
  EXPECT_EQ(params.output.tokens_per_message, 1);
  EXPECT_FALSE(params.expected_position.has_value());
}

ModelFacts ModelWithDefaults() {
  ModelFacts facts = ByteModel();
  facts.generation.max_tokens = 7;
  facts.generation.end_tokens = {10};
  facts.generation.stop_texts = {"END"};
  facts.generation.sampling.temperature = 0.5;
  facts.generation.sampling.top_k = 3;
  facts.generation.sampling.logit_bias = {{1, 5.0}};
  return facts;
}

TEST(ReadGenerate, TakesTheModelsDefaultsBeforeTheApis) {
  const GenerateParams params = Read("", ModelWithDefaults());
  EXPECT_EQ(params.stop.max_tokens, 7);
  EXPECT_EQ(params.stop.end_token_ids, Ids({10}));
  EXPECT_EQ(params.stop.stop_texts, std::vector<std::string>({"END"}));
  EXPECT_EQ(params.sampling.temperature, 0.5);
  EXPECT_EQ(params.sampling.top_k, 3);
  EXPECT_EQ(params.sampling.logit_bias.at(1), 5.0);
}

TEST(ReadGenerate, TakesTheRequestBeforeTheModelsDefaults) {
  const GenerateParams params = Read(
      "sampling { temperature: 2 logit_bias { key: 9 value: -1 } } "
      "stop { max_tokens: 9 stop_texts: 'x' }",
      ModelWithDefaults());
  EXPECT_EQ(params.stop.max_tokens, 9);
  EXPECT_EQ(params.stop.stop_texts, std::vector<std::string>({"x"}));
  EXPECT_EQ(params.sampling.temperature, 2);
  EXPECT_EQ(params.sampling.logit_bias, (std::map<int32_t, double>{{9, -1.0}}));
}

TEST(ReadGenerate, KeepsAPresentZero) {
  const GenerateParams params =
      Read("sampling { temperature: 0 top_k: 0 penalty_window: 0 seed: 0 }",
           ModelWithDefaults());
  EXPECT_EQ(params.sampling.temperature, 0);
  EXPECT_EQ(params.sampling.top_k, 0);
  EXPECT_EQ(params.sampling.penalty_window, 0);
}

TEST(ReadGenerate, AcceptsTheEndsOfEveryRange) {
  Read(
      "sampling { temperature: 100 top_k: 256 top_p: 1 min_p: 1 typical_p: 1 "
      "repetition_penalty: 10 presence_penalty: -2 frequency_penalty: 2 "
      "penalty_window: 4096 seed: 18446744073709551615 min_tokens: 4096 "
      "logit_bias { key: 255 value: -100 } } "
      "stop { max_tokens: 4096 stop_token_ids: 255 } "
      "output { logprobs: 20 max_tokens_per_message: 1024 }");
  Read(
      "sampling { top_p: 1e-300 repetition_penalty: 1e-300 } "
      "stop { max_tokens: 1 } expected_position: 0");
}

TEST(ReadGenerate, TurnsNegativeZeroIntoZero) {
  const GenerateParams params = Read("sampling { temperature: -0.0 }");
  EXPECT_FALSE(std::signbit(params.sampling.temperature));
}

TEST(ReadGenerate, EncodesATextPrompt) {
  EXPECT_EQ(Read("text: 'a\\000\xc3\xa4'").input, Ids({'a', 0, 0xc3, 0xa4}));
}

TEST(ReadGenerate, TakesTokenIdsAsTheyAre) {
  EXPECT_EQ(Read("tokens { ids: [255, 0, 7] }", IdModel()).input,
            Ids({255, 0, 7}));
}

TEST(ReadGenerate, AcceptsAPromptAtTheLimit) {
  RequestLimits limits;
  limits.prompt_bytes = 5;
  EXPECT_EQ(Read("text: 'abcde'", ByteModel(), limits).input->size(), 5u);
}

TEST(ReadGenerate, LowersADefaultToALowerLimitOfTheServer) {
  RequestLimits limits;
  limits.max_tokens = 50;
  EXPECT_EQ(Read("", ByteModel(), limits).stop.max_tokens, 50);
}

TEST(ReadGenerate, RefusesMinTokensThatLeaveNothingToSample) {
  ModelFacts facts = IdModel();
  facts.config.vocab_size = 3;
  facts.generation.end_tokens = {2};
  const std::string stops = "stop { stop_token_ids: [1, 0, 0] ";
  const std::string one = "sampling { min_tokens: 1 } ";
  const auto refusal = [&](const std::string& text) {
    return Refusal(
        ReadGenerate(FromText<v1::GenerateRequest>(text), facts, {}));
  };
  EXPECT_EQ(refusal(one + stops + "}"),
            "INVALID_ARGUMENT FIELD_INVALID sampling.min_tokens");
  EXPECT_EQ(refusal(stops + "}"), "OK");
  EXPECT_EQ(refusal(one + stops + "ignore_end_token: true }"), "OK");
  EXPECT_EQ(refusal(one + "stop { stop_token_ids: [1] }"), "OK");
}

TEST(ReadAppend, ReportsScoresOnlyWhenAsked) {
  const ModelFacts facts = ByteModel();
  const auto plain = ReadAppend(
      FromText<v1::AppendTokensRequest>("session_id: 's' text: 'ab'"), facts,
      {});
  ASSERT_TRUE(plain.ok());
  EXPECT_FALSE(plain->return_scored);
  EXPECT_EQ(plain->input, Ids({'a', 'b'}));
  const auto scored =
      ReadAppend(FromText<v1::AppendTokensRequest>(
                     "session_id: 's' text: 'ab' return_logprobs: true"),
                 facts, {});
  ASSERT_TRUE(scored.ok());
  EXPECT_TRUE(scored->return_scored);
}

TEST(ReadScore, NeedsNoSession) {
  const auto params = ReadScore(
      FromText<v1::ScoreRequest>("text: 'a' logprobs: 3"), ByteModel(), {});
  ASSERT_TRUE(params.ok());
  EXPECT_EQ(params->session_id, "");
  EXPECT_EQ(params->top_logprobs, 3);
}

TEST(ReadTokenize, OfEmptyTextGivesNoIds) {
  const auto ids = ReadTokenize({}, ByteModel(), {});
  ASSERT_TRUE(ids.ok());
  EXPECT_TRUE(ids->empty());
}

TEST(ReadTtl, TellsAbsentFromGiven) {
  EXPECT_EQ(*ReadTtl({}), std::nullopt);
  EXPECT_EQ(*ReadTtl(FromText<v1::CreateSessionRequest>(
                "ttl { seconds: 90 nanos: 500000000 }")),
            absl::Seconds(90.5));
  EXPECT_EQ(*ReadTtl(FromText<v1::CreateSessionRequest>("ttl { }")),
            absl::ZeroDuration());
}

TEST(TurnInput, IsThePromptWhereverTheSessionStands) {
  EXPECT_EQ(*TurnInput(Ids({1, 2}), 0, {}), Ids({1, 2}));
  EXPECT_EQ(*TurnInput(Ids({1, 2}), 9, {}), Ids({1, 2}));
}

TEST(TurnInput, IsNothingWhenASessionGoesOn) {
  GenerationDefaults generation;
  generation.start_tokens = {5};
  EXPECT_EQ(*TurnInput(std::nullopt, 3, generation), Ids());
}

TEST(TurnInput, OfAFreshSessionWithoutAPromptIsTheStartTokens) {
  GenerationDefaults generation;
  generation.start_tokens = {5, 6};
  EXPECT_EQ(*TurnInput(std::nullopt, 0, generation), Ids({5, 6}));
  EXPECT_EQ(Refusal(TurnInput(std::nullopt, 0, {})),
            "INVALID_ARGUMENT FIELD_INVALID prompt");
}

TEST(CheckPosition, TellsTheTruePosition) {
  EXPECT_TRUE(CheckPosition(std::nullopt, 7).ok());
  EXPECT_TRUE(CheckPosition(7, 7).ok());
  const absl::Status status = CheckPosition(6, 7);
  EXPECT_EQ(Refusal(status), "ABORTED POSITION_MISMATCH");
  EXPECT_EQ(GetErrorDetails(status).metadata.at("position"), "7");
}

TEST(CheckSessionMetadata, MustBeLikeTheFieldOrAbsent) {
  EXPECT_TRUE(CheckSessionMetadata({}, "a").ok());
  EXPECT_TRUE(CheckSessionMetadata({"a"}, "a").ok());
  for (const std::vector<std::string>& values :
       std::vector<std::vector<std::string>>{{"b"}, {"a", "b"}, {""}}) {
    EXPECT_EQ(Refusal(CheckSessionMetadata(values, "a")),
              "INVALID_ARGUMENT FIELD_INVALID x-txl-session");
  }
  EXPECT_EQ(Refusal(CheckSessionMetadata({"a"}, "")),
            "INVALID_ARGUMENT FIELD_INVALID x-txl-session");
}

}  // namespace
}  // namespace txl
