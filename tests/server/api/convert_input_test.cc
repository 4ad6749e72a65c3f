#include "server/api/convert_input.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "absl/strings/escaping.h"
#include "tests/model/sampling/some_kinds.h"
#include "tests/server/api/convert_fixture.h"
#include "txl/v1/generation_service.pb.h"
#include "txl/v1/session_service.pb.h"

namespace txl {
namespace {

using Ids = std::vector<int32_t>;

GenerateParams ReadInput(const std::string& request,
                         const ModelFacts& facts = ByteModel(),
                         const RequestLimits& limits = {}) {
  const absl::StatusOr<GenerateParams> params =
      ReadGenerate(FromText<v1::GenerateRequest>(request), facts, limits);
  EXPECT_TRUE(params.ok()) << params.status() << " for " << request;
  return params.value_or(GenerateParams{});
}

TEST(ReadGenerate, OfAnEmptyRequestHasTheDefaultsOfTheApi) {
  const GenerateParams params = ReadInput("");
  EXPECT_EQ(params.session_id, "");
  EXPECT_FALSE(params.input.has_value());
  EXPECT_EQ(params.sampling.temperature, 1);
  EXPECT_EQ(params.sampling.penalty_window, 64);
  EXPECT_EQ(params.sampling.min_tokens, 0);
  EXPECT_EQ(params.stop.max_tokens, 128);
  EXPECT_TRUE(params.stop.stop_texts.empty());
  EXPECT_FALSE(params.stop.ignore_end_token);
  EXPECT_EQ(params.output.logprobs.count(), 0);
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
  const GenerateParams params = ReadInput("", ModelWithDefaults());
  EXPECT_EQ(params.stop.max_tokens, 7);
  EXPECT_EQ(params.stop.end_token_ids, Ids({10}));
  EXPECT_EQ(params.stop.stop_texts, std::vector<std::string>({"END"}));
  EXPECT_EQ(params.sampling.temperature, 0.5);
  EXPECT_EQ(params.sampling.top_k, 3);
  EXPECT_EQ(params.sampling.logit_bias.at(1), 5.0);
}

TEST(ReadGenerate, TakesTheRequestBeforeTheModelsDefaults) {
  const GenerateParams params = ReadInput(
      "sampling { temperature: 2 logit_bias { key: 9 value: -1 } } "
      "stop { max_tokens: 9 stop_texts: 'x' }",
      ModelWithDefaults());
  EXPECT_EQ(params.stop.max_tokens, 9);
  EXPECT_EQ(params.stop.stop_texts, std::vector<std::string>({"x"}));
  EXPECT_EQ(params.sampling.temperature, 2);
  EXPECT_EQ(params.sampling.logit_bias, (std::map<int32_t, double>{{9, -1.0}}));
}

TEST(ReadGenerate, KeepsAPresentZero) {
  const GenerateParams params = ReadInput(
      "sampling { temperature: 0 top_k: 0 penalty_window: 0 seed: 0 }",
      ModelWithDefaults());
  EXPECT_EQ(params.sampling.temperature, 0);
  EXPECT_EQ(params.sampling.top_k, 0);
  EXPECT_EQ(params.sampling.penalty_window, 0);
}

TEST(ReadGenerate, AcceptsTheEndsOfEveryRange) {
  ReadInput(
      "sampling { temperature: 100 top_k: 256 top_p: 1 min_p: 1 typical_p: 1 "
      "repetition_penalty: 10 presence_penalty: -2 frequency_penalty: 2 "
      "penalty_window: 4096 seed: 18446744073709551615 min_tokens: 4096 "
      "logit_bias { key: 255 value: -100 } allowed_token_ids: [255, 0] } "
      "stop { max_tokens: 4096 stop_token_ids: 255 "
      "token_count { id: 255 count: 2147483647 } } "
      "output { logprobs: 20 max_tokens_per_message: 1024 "
      "logprob_token_ids: [255, 0] }");
  ReadInput(
      "sampling { top_p: 1e-300 repetition_penalty: 1e-300 } "
      "stop { max_tokens: 1 } expected_position: 0");
}

ModelFacts ModelWithKinds() {
  ModelFacts facts = ByteModel();
  facts.kinds = SomeTable(facts.config.vocab_size);
  return facts;
}

TEST(ReadGenerate, FollowsTheKindsOfAModelThatHasThem) {
  ModelFacts facts = ModelWithKinds();
  EXPECT_FALSE(ReadInput("", facts).sampling.follow_kinds);
  EXPECT_TRUE(ReadInput("sampling { follow_kinds: true }", facts)
                  .sampling.follow_kinds);
  facts.generation.sampling.follow_kinds = true;
  EXPECT_TRUE(ReadInput("", facts).sampling.follow_kinds);
  EXPECT_FALSE(ReadInput("sampling { follow_kinds: false }", facts)
                   .sampling.follow_kinds);
  EXPECT_FALSE(
      ReadInput("sampling { follow_kinds: false }").sampling.follow_kinds);
}

TEST(ReadGenerate, TurnsNegativeZeroIntoZero) {
  const GenerateParams params = ReadInput("sampling { temperature: -0.0 }");
  EXPECT_FALSE(std::signbit(params.sampling.temperature));
}

TEST(ReadGenerate, EncodesATextPrompt) {
  EXPECT_EQ(ReadInput("text: 'a\\000\xc3\xa4'").input,
            Ids({'a', 0, 0xc3, 0xa4}));
}

TEST(ReadGenerate, TakesTokenIdsAsTheyAre) {
  EXPECT_EQ(ReadInput("tokens { ids: [255, 0, 7] }", IdModel()).input,
            Ids({255, 0, 7}));
}

TEST(ReadGenerate, AcceptsAPromptAtTheLimit) {
  RequestLimits limits = {.prompt_bytes = 5};
  EXPECT_EQ(ReadInput("text: 'abcde'", ByteModel(), limits).input->size(), 5u);
}

TEST(ReadGenerate, LowersADefaultToALowerLimitOfTheServer) {
  RequestLimits limits = {.max_tokens = 50};
  EXPECT_EQ(ReadInput("", ByteModel(), limits).stop.max_tokens, 50);
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
  const std::string allowed =
      "sampling { min_tokens: 1 allowed_token_ids: [1, 2] } ";
  EXPECT_EQ(refusal(allowed + "stop { stop_token_ids: [1] }"),
            "INVALID_ARGUMENT FIELD_INVALID sampling.min_tokens");
  EXPECT_EQ(refusal(allowed + "stop { stop_token_ids: [0] }"), "OK");
  // A counted token may be sampled before.
  EXPECT_EQ(refusal(allowed + "stop { token_count { id: 1 count: 1 } }"), "OK");
}

TEST(ReadGenerate, AllowedIdsAreASet) {
  EXPECT_EQ(ReadInput("sampling { allowed_token_ids: [9, 3, 9, 0, 3] }")
                .sampling.allowed_token_ids,
            Ids({0, 3, 9}));
}

TEST(ReadGenerate, NamedIdsAreReportedAsTheyAreNamed) {
  const LogprobParams logprobs =
      ReadInput("output { logprob_token_ids: [9, 3, 9] logprobs: 1 }")
          .output.logprobs;
  EXPECT_EQ(logprobs.top, 1);
  EXPECT_EQ(*logprobs.ids, Ids({9, 3, 9}));
  EXPECT_EQ(logprobs.count(), 4);
  EXPECT_EQ(ReadInput("").output.logprobs.ids, nullptr);
}

TEST(ReadGenerate, TakesACountOfAToken) {
  const StopRules stop =
      ReadInput("stop { token_count { id: 0 count: 3 } }").stop;
  ASSERT_TRUE(stop.token_count.has_value());
  EXPECT_EQ(stop.token_count->id, 0);
  EXPECT_EQ(stop.token_count->count, 3);
  EXPECT_FALSE(ReadInput("").stop.token_count.has_value());
}

TEST(ReadScore, TakesNamedIds) {
  const auto scored = ReadScore(
      FromText<v1::ScoreRequest>("text: 'ab' logprob_token_ids: [7, 255]"),
      ByteModel(), {});
  ASSERT_TRUE(scored.ok()) << scored.status();
  EXPECT_EQ(*scored->logprobs.ids, Ids({7, 255}));
  const auto appended =
      ReadAppend(FromText<v1::AppendTokensRequest>(
                     "session_id: 's' text: 'ab' logprob_token_ids: 7"),
                 ByteModel(), {});
  ASSERT_TRUE(appended.ok()) << appended.status();
  EXPECT_EQ(*appended->logprobs.ids, Ids({7}));
  EXPECT_EQ(Refusal(ReadScore(FromText<v1::ScoreRequest>(
                                  "text: 'ab' logprob_token_ids: [0, 256]"),
                              ByteModel(), {})),
            "INVALID_ARGUMENT FIELD_INVALID logprob_token_ids[1]");
}

std::string ReadRefusal(const std::string& request) {
  return Refusal(ReadGenerate(FromText<v1::GenerateRequest>(request),
                              ByteModel(), RequestLimits()));
}

TEST(ReadGenerate, TakesWhatWasReceived) {
  EXPECT_FALSE(ReadInput("").received.has_value());
  const GenerateParams nothing = ReadInput("received { seed: 3 }");
  ASSERT_TRUE(nothing.received.has_value());
  EXPECT_EQ(nothing.received->seed, 3u);
  EXPECT_EQ(nothing.received->token_ids, Ids());
  const GenerateParams some = ReadInput(
      "session_id: 's' request_id: 'r' received { token_ids: [255, 0] }");
  EXPECT_EQ(some.received->token_ids, Ids({255, 0}));
  EXPECT_EQ(some.identity.digest,
            ReadInput("session_id: 's' request_id: 'r'").identity.digest);
}

TEST(ReadGenerate, RefusesWhatNoTurnCanHaveGiven) {
  const std::string two = "stop { max_tokens: 2 } ";
  EXPECT_EQ(ReadRefusal(two + "received { token_ids: [1, 2] }"), "OK");
  EXPECT_EQ(ReadRefusal(two + "received { token_ids: [1, 2, 3] }"),
            "INVALID_ARGUMENT FIELD_INVALID received");
  EXPECT_EQ(ReadRefusal("received { token_ids: [1, 2, 256] }"),
            "INVALID_ARGUMENT FIELD_INVALID received.token_ids[2]");
  EXPECT_EQ(ReadRefusal("session_id: 's' received { token_ids: 1 }"),
            "INVALID_ARGUMENT FIELD_INVALID request_id");
}

TurnRecord Record(const Ids& ids) {
  TurnRecord record;
  record.seed = 7;
  for (const int32_t id : ids) {
    record.tokens.emplace_back();
    record.tokens.back().token_id = id;
  }
  return record;
}

TEST(CheckReceived, OneHasToBeginWithTheOther) {
  const TurnRecord held = Record({1, 2, 3});
  const auto check = [&](const std::string& received, const TurnRecord& kept) {
    const GenerateParams params = ReadInput("received { " + received + " }");
    return Refusal(CheckReceived(params, &kept));
  };
  for (const char* ids : {"", "1", "1, 2", "1, 2, 3", "1, 2, 3, 4"}) {
    const std::string text = "seed: 7 token_ids: [" + std::string(ids) + "]";
    EXPECT_EQ(check(text, held), "OK") << ids;
    EXPECT_EQ(check(text, Record({})), "OK") << ids;
  }
  for (const char* ids : {"2", "1, 3", "1, 2, 4", "1, 2, 4, 4", "0, 2, 3"}) {
    EXPECT_EQ(check("seed: 7 token_ids: [" + std::string(ids) + "]", held),
              "ABORTED RESUME_MISMATCH")
        << ids;
  }
  EXPECT_EQ(check("seed: 8 token_ids: 1", held), "ABORTED RESUME_MISMATCH");
  TurnRecord finished = held;
  finished.finished.emplace();
  EXPECT_EQ(check("seed: 7 token_ids: [1, 2, 3]", finished), "OK");
  EXPECT_EQ(check("seed: 7 token_ids: [1, 2, 3, 4]", finished),
            "ABORTED RESUME_MISMATCH");
}

TEST(CheckReceived, WithoutARecordOnlyTheRequestsOwnSeedCounts) {
  const auto check = [](const std::string& request) {
    return Refusal(CheckReceived(ReadInput(request), nullptr));
  };
  EXPECT_EQ(check(""), "OK");
  EXPECT_EQ(check("received { seed: 7 token_ids: 1 }"), "OK");
  EXPECT_EQ(check("received { seed: 7 } sampling { seed: 7 }"), "OK");
  EXPECT_EQ(check("received { seed: 7 } sampling { seed: 0 }"),
            "INVALID_ARGUMENT FIELD_INVALID received.seed");
}

TEST(AddReceived, WhatTheSessionLacksIsAdopted) {
  Turn turn;
  turn.stop.max_tokens = 3;
  ASSERT_TRUE(AddReceived({7, {1, 2, 3}}, turn).ok());
  EXPECT_EQ(turn.received, 3);
  EXPECT_EQ(turn.adopted, Ids({1, 2, 3}));
  turn.resumed = std::make_shared<const TurnRecord>(Record({1, 2}));
  ASSERT_TRUE(AddReceived({7, {1, 2, 3}}, turn).ok());
  EXPECT_EQ(turn.adopted, Ids({3}));
  ASSERT_TRUE(AddReceived({7, {1}}, turn).ok());
  EXPECT_EQ(turn.received, 1);
  EXPECT_EQ(turn.adopted, Ids());
  // A default that the session's room has lowered.
  EXPECT_EQ(Refusal(AddReceived({7, {1, 2, 3, 4}}, turn)),
            "INVALID_ARGUMENT FIELD_INVALID received");
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
                     "session_id: 's' text: 'ab' return_logprobs: true "
                     "logprobs: 2"),
                 facts, {});
  ASSERT_TRUE(scored.ok());
  EXPECT_TRUE(scored->return_scored);
  EXPECT_EQ(scored->logprobs.top, 2);
  EXPECT_EQ(plain->logprobs.count(), 0);
}

TEST(ReadScore, NeedsNoSession) {
  const auto params = ReadScore(
      FromText<v1::ScoreRequest>("text: 'a' logprobs: 3"), ByteModel(), {});
  ASSERT_TRUE(params.ok());
  EXPECT_EQ(params->session_id, "");
  EXPECT_EQ(params->logprobs.top, 3);
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

std::string Digest(const std::string& text) {
  return RequestDigest(FromText<v1::GenerateRequest>(text));
}

TEST(RequestDigest, IsEqualForEqualRequests) {
  EXPECT_EQ(Digest("text: 'a' request_id: 'r'"),
            Digest("request_id: 'r' text: 'a'"));
  EXPECT_EQ(Digest("text: 'a'").size(), 32u);
}

TEST(RequestDigest, DoesNotDependOnTheOrderOfAMap) {
  std::string forth, back;
  for (int id = 0; id < 50; ++id) {
    const std::string entry =
        " logit_bias { key: " + std::to_string(id) + " value: 1 }";
    forth += entry;
    back = entry + back;
  }
  EXPECT_EQ(Digest("sampling {" + forth + " }"),
            Digest("sampling {" + back + " }"));
}

TEST(RequestDigest, DiffersByEveryFieldThatIsSaid) {
  const std::set<std::string> digests = {
      Digest(""),
      Digest("text: 'a'"),
      Digest("text: 'b'"),
      Digest("tokens { ids: 97 }"),
      Digest("session_id: 'a'"),
      Digest("request_id: 'a'"),
      Digest("expected_position: 0"),
      Digest("expected_position: 1"),
      Digest("sampling { temperature: 0 }"),
      Digest("sampling { seed: 0 }"),
      Digest("stop { max_tokens: 1 }"),
      Digest("output { logprobs: 1 }"),
      Digest("unknown: UNKNOWN_TEXT_SKIP"),
      Digest("unknown: UNKNOWN_TEXT_SYMBOL"),
  };
  EXPECT_EQ(digests.size(), 14u);
}

TEST(RequestDigest, IsTheSameWhateverWasReceived) {
  EXPECT_EQ(Digest("text: 'a' received { seed: 1 token_ids: 2 }"),
            Digest("text: 'a'"));
  EXPECT_EQ(Digest("text: 'a' received {}"), Digest("text: 'a'"));
  EXPECT_NE(Digest("text: 'b' received { seed: 1 token_ids: 2 }"),
            Digest("text: 'a'"));
}

// SHA-256 of the type's name, a zero and the bytes 12 01 61, computed
// elsewhere: a store keeps digests longer than a server lives, and fields that
// are not set must not change them.
TEST(RequestDigest, IsTheHashOfTheNameAndTheBytes) {
  constexpr char kDigest[] =
      "ce57c221714b502ffed4ea362b6495160ef8d22ebab36b1d4bbaa9c09cb7f286";
  EXPECT_EQ(absl::BytesToHexString(Digest("text: 'a'")), kDigest);
  EXPECT_EQ(absl::BytesToHexString(
                Digest("text: 'a' unknown: UNKNOWN_TEXT_UNSPECIFIED")),
            kDigest);
}

TEST(RequestDigest, DiffersByMethod) {
  EXPECT_NE(RequestDigest(v1::GenerateRequest()),
            RequestDigest(v1::AppendTokensRequest()));
}

}  // namespace

}  // namespace txl
