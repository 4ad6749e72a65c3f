#include "model/config/generation_defaults.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr int64_t kVocabulary = 100;

GenerationDefaults Parse(const std::string& text) {
  absl::StatusOr<GenerationDefaults> defaults =
      ParseGenerationDefaults(text, "generation.json", kVocabulary);
  EXPECT_TRUE(defaults.ok()) << defaults.status();
  return defaults.ok() ? *defaults : GenerationDefaults();
}

TEST(GenerationDefaults, AnEmptyObjectSaysNothing) {
  const GenerationDefaults defaults = Parse("{}");
  EXPECT_THAT(defaults.start_tokens, IsEmpty());
  EXPECT_THAT(defaults.end_tokens, IsEmpty());
  EXPECT_EQ(defaults.max_tokens, std::nullopt);
  EXPECT_THAT(defaults.stop_texts, IsEmpty());
  EXPECT_EQ(defaults.sampling.temperature, std::nullopt);
  EXPECT_EQ(defaults.sampling.seed, std::nullopt);
  EXPECT_THAT(defaults.sampling.logit_bias, IsEmpty());
}

constexpr char kEverything[] = R"({
  "start_tokens": [0, 7], "end_tokens": [99], "max_tokens": 200,
  "stop_texts": ["\n\n", "END"], "temperature": 0.8, "top_k": 40,
  "top_p": 0.9, "min_p": 0.05, "typical_p": 0.95, "repetition_penalty": 1.1,
  "presence_penalty": -0.5, "frequency_penalty": 0.25, "penalty_window": 32,
  "logit_bias": {"3": -100, "12": 1.5}, "follow_kinds": true,
  "seed": 18446744073709551615, "min_tokens": 2})";

TEST(GenerationDefaults, EveryFieldIsTakenOver) {
  const GenerationDefaults defaults = Parse(kEverything);
  EXPECT_THAT(defaults.start_tokens, ElementsAre(0, 7));
  EXPECT_THAT(defaults.end_tokens, ElementsAre(99));
  EXPECT_EQ(defaults.max_tokens, 200);
  EXPECT_THAT(defaults.stop_texts, ElementsAre("\n\n", "END"));
  const SamplingOverrides& sampling = defaults.sampling;
  EXPECT_EQ(sampling.temperature, 0.8);
  EXPECT_EQ(sampling.top_k, 40);
  EXPECT_EQ(sampling.top_p, 0.9);
  EXPECT_EQ(sampling.min_p, 0.05);
  EXPECT_EQ(sampling.typical_p, 0.95);
  EXPECT_EQ(sampling.repetition_penalty, 1.1);
  EXPECT_EQ(sampling.presence_penalty, -0.5);
  EXPECT_EQ(sampling.frequency_penalty, 0.25);
  EXPECT_EQ(sampling.penalty_window, 32);
  EXPECT_THAT(sampling.logit_bias, ElementsAre(Pair(3, -100), Pair(12, 1.5)));
  EXPECT_EQ(sampling.follow_kinds, true);
  EXPECT_EQ(sampling.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(sampling.min_tokens, 2);
}

TEST(GenerationDefaults, APresentZeroIsZero) {
  const SamplingOverrides sampling =
      Parse(R"({"temperature": 0, "top_k": 0, "seed": 0})").sampling;
  EXPECT_EQ(sampling.temperature, 0);
  EXPECT_EQ(sampling.top_k, 0);
  EXPECT_EQ(sampling.seed, 0u);
}

TEST(GenerationDefaults, WrittenAndReadAgainTheyAreTheSame) {
  const std::string written = GenerationDefaultsToJson(Parse(kEverything));
  const GenerationDefaults again = Parse(written);
  EXPECT_THAT(again.start_tokens, ElementsAre(0, 7));
  EXPECT_THAT(again.end_tokens, ElementsAre(99));
  EXPECT_THAT(again.stop_texts, ElementsAre("\n\n", "END"));
  EXPECT_EQ(again.sampling.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_THAT(again.sampling.logit_bias,
              ElementsAre(Pair(3, -100), Pair(12, 1.5)));
  EXPECT_EQ(GenerationDefaultsToJson(again), written);
}

TEST(GenerationDefaults, NothingIsWrittenForWhatWasNotSaid) {
  EXPECT_EQ(GenerationDefaultsToJson(GenerationDefaults()), "{}\n");
}

struct BadDefault {
  const char* test_name;
  const char* text;
  const char* named;
};

std::ostream& operator<<(std::ostream& out, const BadDefault& bad) {
  return out << bad.text;
}

constexpr BadDefault kBad[] = {
    {"Misspelt", R"({"temprature": 0.8})", "temprature"},
    {"StartBeyondVocabulary", R"({"start_tokens": [100]})", "start_tokens"},
    {"StartNegative", R"({"start_tokens": [-1]})", "start_tokens"},
    {"EndAsText", R"({"end_tokens": ["<eos>"]})", "end_tokens"},
    {"EndAsNumber", R"({"end_tokens": 0})", "end_tokens"},
    {"NoTokensAtAll", R"({"max_tokens": 0})", "max_tokens"},
    {"TokensBeyondInt32", R"({"max_tokens": 2147483648})", "max_tokens"},
    {"StopTextAsNumber", R"({"stop_texts": [1]})", "stop_texts"},
    {"EmptyStopText", R"({"stop_texts": ["a", ""]})", "stop_texts"},
    {"NegativeTemperature", R"({"temperature": -0.1})", "temperature"},
    {"TemperatureAsText", R"({"temperature": "hot"})", "temperature"},
    {"TopKBeyondVocabulary", R"({"top_k": 101})", "top_k"},
    {"TopKWithFraction", R"({"top_k": 1.5})", "top_k"},
    {"TopPZero", R"({"top_p": 0})", "top_p"},
    {"TopPAboveOne", R"({"top_p": 1.1})", "top_p"},
    {"MinPNegative", R"({"min_p": -0.1})", "min_p"},
    {"TypicalPZero", R"({"typical_p": 0})", "typical_p"},
    {"RepetitionZero", R"({"repetition_penalty": 0})", "repetition_penalty"},
    {"PresenceTooLarge", R"({"presence_penalty": 3})", "presence_penalty"},
    {"FrequencyTooSmall", R"({"frequency_penalty": -3})", "frequency_penalty"},
    {"NegativeWindow", R"({"penalty_window": -1})", "penalty_window"},
    {"BiasAsList", R"({"logit_bias": [1]})", "logit_bias"},
    {"BiasOfNoId", R"({"logit_bias": {"a": 1}})", "logit_bias"},
    {"BiasBeyondVocabulary", R"({"logit_bias": {"100": 1}})", "logit_bias"},
    {"BiasWithTwoSpellings", R"({"logit_bias": {"05": 1}})", "logit_bias"},
    {"BiasTooLarge", R"({"logit_bias": {"5": 101}})", "logit_bias"},
    {"BiasAsText", R"({"logit_bias": {"5": "1"}})", "logit_bias"},
    {"FollowKindsAsNumber", R"({"follow_kinds": 1})", "follow_kinds"},
    {"NegativeSeed", R"({"seed": -1})", "seed"},
    {"NegativeMinimum", R"({"min_tokens": -1})", "min_tokens"},
};

class BadGenerationDefaults : public testing::TestWithParam<BadDefault> {};

TEST_P(BadGenerationDefaults, AreRefusedNamingFileAndField) {
  const absl::StatusOr<GenerationDefaults> defaults =
      ParseGenerationDefaults(GetParam().text, "generation.json", kVocabulary);
  ASSERT_FALSE(defaults.ok());
  EXPECT_EQ(defaults.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(defaults.status().message()),
      AllOf(HasSubstr("generation.json: field "), HasSubstr(GetParam().named)));
}

INSTANTIATE_TEST_SUITE_P(All, BadGenerationDefaults, testing::ValuesIn(kBad),
                         [](const auto& info) {
                           return std::string(info.param.test_name);
                         });

TEST(GenerationDefaults, TextThatIsNoObjectIsRefused) {
  EXPECT_FALSE(ParseGenerationDefaults("[]", "g", kVocabulary).ok());
  EXPECT_FALSE(ParseGenerationDefaults("{", "g", kVocabulary).ok());
}

}  // namespace
}  // namespace txl
