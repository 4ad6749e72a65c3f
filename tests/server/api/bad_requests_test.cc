// Every way in which a request can be wrong by itself: status, reason, field.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/api/convert_input.h"
#include "tests/server/api/convert_fixture.h"

namespace txl {
namespace {

struct BadRequest {
  const char* name;
  std::string request;  // text format
  const char* refusal;
};

void PrintTo(const BadRequest& bad, std::ostream* out) { *out << bad.name; }

std::string Repeat(const std::string& part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

std::string Bias(int entries) {
  std::string text = "sampling { ";
  for (int i = 0; i < entries; ++i) {
    absl::StrAppend(&text, "logit_bias { key: ", i, " value: 1 } ");
  }
  return text + "}";
}

constexpr char kInvalid[] = "INVALID_ARGUMENT FIELD_INVALID ";

RequestLimits SmallLimits() { return {.logit_bias = 100}; }

std::string Name(const testing::TestParamInfo<BadRequest>& info) {
  return info.param.name;
}

class BadGenerate : public testing::TestWithParam<BadRequest> {};

TEST_P(BadGenerate, IsRefusedNamingTheField) {
  const auto request = FromText<v1::GenerateRequest>(GetParam().request);
  EXPECT_EQ(Refusal(ReadGenerate(request, ByteModel(), SmallLimits())),
            std::string("INVALID_ARGUMENT ") + GetParam().refusal);
}

INSTANTIATE_TEST_SUITE_P(
    Ids, BadGenerate,
    testing::ValuesIn(std::vector<BadRequest>{
        {"SessionWithSpace", "session_id: 'a b'", "FIELD_INVALID session_id"},
        {"SessionTooLong", "session_id: '" + std::string(65, 'a') + "'",
         "FIELD_INVALID session_id"},
        {"SessionWithSlash", "session_id: '../x'", "FIELD_INVALID session_id"},
        {"RequestIdWithDot", "request_id: 'a.b'", "FIELD_INVALID request_id"},
        {"RequestIdTooLong", "request_id: '" + std::string(65, 'a') + "'",
         "FIELD_INVALID request_id"},
        {"NegativePosition", "expected_position: -1",
         "FIELD_INVALID expected_position"},
    }),
    Name);

INSTANTIATE_TEST_SUITE_P(
    Prompt, BadGenerate,
    testing::ValuesIn(std::vector<BadRequest>{
        {"EmptyText", "text: ''", "FIELD_INVALID text"},
        {"EmptyIds", "tokens { }", "FIELD_INVALID tokens"},
        {"IdOutsideVocabulary", "tokens { ids: [1, 256] }",
         "FIELD_INVALID tokens.ids[1]"},
        {"IdThatIsNegativeAsInt32", "tokens { ids: 4294967295 }",
         "FIELD_INVALID tokens.ids[0]"},
        {"TooManyIds", "tokens { " + Repeat("ids: 1 ", 8193) + "}",
         "OVER_LIMIT tokens.ids"},
        {"TextOfTooManyTokens", "text: '" + std::string(8193, 'a') + "'",
         "OVER_LIMIT text"},
        {"TextOfTooManyBytes",
         "text: '" + std::string((256 << 10) + 1, 'a') + "'",
         "OVER_LIMIT text"},
    }),
    Name);

INSTANTIATE_TEST_SUITE_P(
    Sampling, BadGenerate,
    testing::ValuesIn(std::vector<BadRequest>{
        {"KindsOfAModelWithoutThem", "sampling { follow_kinds: true }",
         "FIELD_INVALID sampling.follow_kinds"},
        {"TemperatureNegative", "sampling { temperature: -0.1 }",
         "FIELD_INVALID sampling.temperature"},
        {"TemperatureTooHigh", "sampling { temperature: 100.5 }",
         "FIELD_INVALID sampling.temperature"},
        {"TemperatureNan", "sampling { temperature: nan }",
         "FIELD_INVALID sampling.temperature"},
        {"TemperatureInfinite", "sampling { temperature: inf }",
         "FIELD_INVALID sampling.temperature"},
        {"TopKNegative", "sampling { top_k: -1 }",
         "FIELD_INVALID sampling.top_k"},
        {"TopKAboveVocabulary", "sampling { top_k: 257 }",
         "FIELD_INVALID sampling.top_k"},
        {"TopKHuge", "sampling { top_k: 9223372036854775807 }",
         "FIELD_INVALID sampling.top_k"},
        {"TopPZero", "sampling { top_p: 0 }", "FIELD_INVALID sampling.top_p"},
        {"TopPAboveOne", "sampling { top_p: 1.001 }",
         "FIELD_INVALID sampling.top_p"},
        {"TopPNan", "sampling { top_p: nan }", "FIELD_INVALID sampling.top_p"},
        {"MinPNegative", "sampling { min_p: -0.001 }",
         "FIELD_INVALID sampling.min_p"},
        {"MinPAboveOne", "sampling { min_p: 1.5 }",
         "FIELD_INVALID sampling.min_p"},
        {"TypicalPZero", "sampling { typical_p: 0 }",
         "FIELD_INVALID sampling.typical_p"},
        {"TypicalPInfinite", "sampling { typical_p: inf }",
         "FIELD_INVALID sampling.typical_p"},
        {"RepetitionZero", "sampling { repetition_penalty: 0 }",
         "FIELD_INVALID sampling.repetition_penalty"},
        {"RepetitionTooHigh", "sampling { repetition_penalty: 10.1 }",
         "FIELD_INVALID sampling.repetition_penalty"},
        {"PresenceTooLow", "sampling { presence_penalty: -2.1 }",
         "FIELD_INVALID sampling.presence_penalty"},
        {"FrequencyTooHigh", "sampling { frequency_penalty: 2.1 }",
         "FIELD_INVALID sampling.frequency_penalty"},
        {"WindowNegative", "sampling { penalty_window: -1 }",
         "FIELD_INVALID sampling.penalty_window"},
        {"WindowTooLong", "sampling { penalty_window: 4097 }",
         "FIELD_INVALID sampling.penalty_window"},
        {"BiasOutsideVocabulary",
         "sampling { logit_bias { key: 256 value: 1 } }",
         "FIELD_INVALID sampling.logit_bias[256]"},
        {"BiasTooHigh", "sampling { logit_bias { key: 1 value: 100.5 } }",
         "FIELD_INVALID sampling.logit_bias"},
        {"BiasNan", "sampling { logit_bias { key: 1 value: nan } }",
         "FIELD_INVALID sampling.logit_bias"},
        {"BiasOfTooManyIds", Bias(101), "OVER_LIMIT sampling.logit_bias"},
        {"MinTokensNegative", "sampling { min_tokens: -1 }",
         "FIELD_INVALID sampling.min_tokens"},
        {"MinTokensAboveMaxTokens",
         "sampling { min_tokens: 6 } stop { max_tokens: 5 }",
         "FIELD_INVALID sampling.min_tokens"},
        {"MinTokensAboveDefaultMaxTokens", "sampling { min_tokens: 129 }",
         "FIELD_INVALID sampling.min_tokens"},
    }),
    Name);

INSTANTIATE_TEST_SUITE_P(
    StopAndOutput, BadGenerate,
    testing::ValuesIn(std::vector<BadRequest>{
        {"MaxTokensZero", "stop { max_tokens: 0 }",
         "FIELD_INVALID stop.max_tokens"},
        {"MaxTokensNegative", "stop { max_tokens: -1 }",
         "FIELD_INVALID stop.max_tokens"},
        {"MaxTokensOverLimit", "stop { max_tokens: 4097 }",
         "OVER_LIMIT stop.max_tokens"},
        {"StopTextEmpty", "stop { stop_texts: ['x', ''] }",
         "FIELD_INVALID stop.stop_texts[1]"},
        {"StopTextTooLong",
         "stop { stop_texts: '" + std::string(257, 'a') + "' }",
         "OVER_LIMIT stop.stop_texts[0]"},
        {"TooManyStopTexts", "stop { " + Repeat("stop_texts: 'a' ", 9) + "}",
         "OVER_LIMIT stop.stop_texts"},
        {"AllowedIdOutsideVocabulary",
         "sampling { allowed_token_ids: [0, 256] }",
         "FIELD_INVALID sampling.allowed_token_ids[1]"},
        {"TooManyAllowedIds",
         "sampling { " + Repeat("allowed_token_ids: 1 ", 1025) + "}",
         "OVER_LIMIT sampling.allowed_token_ids"},
        {"NamedIdOutsideVocabulary", "output { logprob_token_ids: 256 }",
         "FIELD_INVALID output.logprob_token_ids[0]"},
        {"TooManyNamedIds",
         "output { " + Repeat("logprob_token_ids: 1 ", 21) + "}",
         "OVER_LIMIT output.logprob_token_ids"},
        {"CountWithoutId", "stop { token_count { count: 1 } }",
         "FIELD_INVALID stop.token_count.id"},
        {"CountedIdOutsideVocabulary",
         "stop { token_count { id: 256 count: 1 } }",
         "FIELD_INVALID stop.token_count.id"},
        {"CountOfNone", "stop { token_count { id: 1 } }",
         "FIELD_INVALID stop.token_count.count"},
        {"NegativeCount", "stop { token_count { id: 1 count: -1 } }",
         "FIELD_INVALID stop.token_count.count"},
        {"StopTokenOutsideVocabulary", "stop { stop_token_ids: 256 }",
         "FIELD_INVALID stop.stop_token_ids[0]"},
        {"TooManyStopTokens",
         "stop { " + Repeat("stop_token_ids: 1 ", 65) + "}",
         "OVER_LIMIT stop.stop_token_ids"},
        {"TooManyLogprobs", "output { logprobs: 21 }",
         "OVER_LIMIT output.logprobs"},
        {"LogprobsHuge", "output { logprobs: 4294967295 }",
         "OVER_LIMIT output.logprobs"},
        {"NoTokensPerMessage", "output { max_tokens_per_message: 0 }",
         "FIELD_INVALID output.max_tokens_per_message"},
        {"TooManyTokensPerMessage", "output { max_tokens_per_message: 1025 }",
         "OVER_LIMIT output.max_tokens_per_message"},
    }),
    Name);

class TextOnIdModel : public testing::TestWithParam<BadRequest> {};

TEST_P(TextOnIdModel, IsRefusedNamingTheField) {
  const auto request = FromText<v1::GenerateRequest>(GetParam().request);
  EXPECT_EQ(Refusal(ReadGenerate(request, IdModel(), SmallLimits())),
            std::string(kInvalid) + GetParam().refusal);
}

INSTANTIATE_TEST_SUITE_P(
    Generate, TextOnIdModel,
    testing::ValuesIn(std::vector<BadRequest>{
        {"Prompt", "text: 'a'", "text"},
        {"StopTexts", "tokens { ids: 1 } stop { stop_texts: 'a' }",
         "stop.stop_texts"},
        {"TokenBytes", "tokens { ids: 1 } output { include_token_bytes: true }",
         "output.include_token_bytes"},
    }),
    Name);

class BadAppend : public testing::TestWithParam<BadRequest> {};

TEST_P(BadAppend, IsRefusedNamingTheField) {
  const auto request = FromText<v1::AppendTokensRequest>(GetParam().request);
  EXPECT_EQ(Refusal(ReadAppend(request, ByteModel(), SmallLimits())),
            std::string("INVALID_ARGUMENT ") + GetParam().refusal);
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadAppend,
    testing::ValuesIn(std::vector<BadRequest>{
        {"NoSession", "text: 'a'", "FIELD_INVALID session_id"},
        {"NoInput", "session_id: 's'", "FIELD_INVALID input"},
        {"EmptyText", "session_id: 's' text: ''", "FIELD_INVALID text"},
        {"EmptyIds", "session_id: 's' tokens { }", "FIELD_INVALID tokens"},
        {"IdOutsideVocabulary", "session_id: 's' tokens { ids: 256 }",
         "FIELD_INVALID tokens.ids[0]"},
        {"TooManyTokens",
         "session_id: 's' text: '" + std::string(8193, 'a') + "'",
         "OVER_LIMIT text"},
        {"RequestId", "session_id: 's' text: 'a' request_id: 'ä'",
         "FIELD_INVALID request_id"},
        {"NegativePosition", "session_id: 's' text: 'a' expected_position: -5",
         "FIELD_INVALID expected_position"},
    }),
    Name);

class BadScore : public testing::TestWithParam<BadRequest> {};

TEST_P(BadScore, IsRefusedNamingTheField) {
  const auto request = FromText<v1::ScoreRequest>(GetParam().request);
  EXPECT_EQ(Refusal(ReadScore(request, ByteModel(), SmallLimits())),
            std::string("INVALID_ARGUMENT ") + GetParam().refusal);
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadScore,
    testing::ValuesIn(std::vector<BadRequest>{
        {"BadSession", "session_id: '!' text: 'a'", "FIELD_INVALID session_id"},
        {"NoInput", "", "FIELD_INVALID input"},
        {"EmptyIds", "tokens { }", "FIELD_INVALID tokens"},
        {"TooManyLogprobs", "text: 'a' logprobs: 21", "OVER_LIMIT logprobs"},
        {"TooManyIds", "tokens { " + Repeat("ids: 1 ", 8193) + "}",
         "OVER_LIMIT tokens.ids"},
    }),
    Name);

TEST(BadTokenize, TextOnAModelWithoutATokenizer) {
  EXPECT_EQ(Refusal(ReadTokenize(FromText<v1::TokenizeRequest>("text: 'a'"),
                                 IdModel(), {})),
            "INVALID_ARGUMENT FIELD_INVALID text");
}

TEST(BadTokenize, IdsOnAModelWithoutATokenizer) {
  EXPECT_EQ(
      Refusal(ReadDetokenize(FromText<v1::DetokenizeRequest>("token_ids: 1"),
                             IdModel(), {})),
      "INVALID_ARGUMENT FIELD_INVALID token_ids");
}

TEST(BadTokenize, IdOutsideTheVocabulary) {
  const auto request = FromText<v1::DetokenizeRequest>("token_ids: [0, 300]");
  EXPECT_EQ(Refusal(ReadDetokenize(request, ByteModel(), {})),
            "INVALID_ARGUMENT FIELD_INVALID token_ids[1]");
}

TEST(BadTokenize, TooManyIds) {
  const auto request =
      FromText<v1::DetokenizeRequest>(Repeat("token_ids: 1 ", 8193));
  EXPECT_EQ(Refusal(ReadDetokenize(request, ByteModel(), {})),
            "INVALID_ARGUMENT OVER_LIMIT token_ids");
}

TEST(BadSessionRequest, SessionIdOfTheClientsChoice) {
  EXPECT_EQ(
      Refusal(ReadTtl(FromText<v1::CreateSessionRequest>("session_id: 'a/b'"))),
      "INVALID_ARGUMENT FIELD_INVALID session_id");
}

TEST(BadSessionRequest, DurationThatIsNone) {
  for (const char* ttl :
       {"seconds: 1 nanos: -1", "seconds: 315576000001", "nanos: 1000000000",
        "seconds: -9223372036854775808"}) {
    const auto request =
        FromText<v1::CreateSessionRequest>(absl::StrCat("ttl { ", ttl, " }"));
    EXPECT_EQ(Refusal(ReadTtl(request)), "INVALID_ARGUMENT FIELD_INVALID ttl")
        << ttl;
  }
}

}  // namespace
}  // namespace txl
