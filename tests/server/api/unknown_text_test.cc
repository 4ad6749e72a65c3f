// The field `unknown` of every request that has text.

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "model/text/symbol_vocabulary.h"
#include "server/api/convert_input.h"
#include "server/api/convert_output.h"
#include "tests/server/api/convert_fixture.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Ids = std::vector<int32_t>;

// "to", "be" and, in a model of its own, "<unk>".
ModelFacts WordModel(bool with_unknown) {
  SymbolRules rules;
  static const SymbolVocabulary strict("symbols", {"<unk>", "to", "be"}, rules);
  rules.unknown_id = 0;
  static const SymbolVocabulary lenient("symbols", {"<unk>", "to", "be"},
                                        rules);
  ModelFacts facts = ByteModel();
  facts.config.vocab_size = 3;
  facts.vocabulary = with_unknown ? &lenient : &strict;
  return facts;
}

// A request that has more to it than its input and `unknown`, and its reader.
struct Method {
  const char* name;
  std::function<absl::StatusOr<Ids>(const std::string&, const ModelFacts&)>
      read;
};

template <typename Request, typename Params>
Method Feeding(const char* name, const std::string& rest,
               absl::StatusOr<Params> (*read)(const Request&, const ModelFacts&,
                                              const RequestLimits&)) {
  return {name,
          [=](const std::string& request,
              const ModelFacts& facts) -> absl::StatusOr<Ids> {
            const auto params =
                read(FromText<Request>(request + rest), facts, {});
            if (!params.ok()) return params.status();
            return *std::optional<Ids>(params->input);
          }};
}

std::vector<Method> Methods() {
  return {
      Feeding<v1::GenerateRequest>("Generate", "", ReadGenerate),
      Feeding<v1::AppendTokensRequest>("AppendTokens", " session_id: 's'",
                                       ReadAppend),
      Feeding<v1::ScoreRequest>("Score", "", ReadScore),
      {"ScoreAlternatives",
       [](const std::string& request,
          const ModelFacts& facts) -> absl::StatusOr<Ids> {
         const auto params = ReadAlternatives(
             FromText<v1::ScoreAlternativesRequest>(
                 request + " alternatives { tokens { ids: 1 } }"),
             facts, {});
         if (!params.ok()) return params.status();
         return params->context;
       }},
  };
}

TEST(UnknownText, IsTheUnknownSymbolWhereNothingIsSaid) {
  for (const Method& method : Methods()) {
    EXPECT_THAT(*method.read("text: 'to err'", WordModel(true)),
                ElementsAre(1, 0))
        << method.name;
    const auto refused = method.read("text: 'to\\nerr'", WordModel(false));
    EXPECT_EQ(Refusal(refused), "INVALID_ARGUMENT FIELD_INVALID text")
        << method.name;
    EXPECT_THAT(std::string(refused.status().message()),
                HasSubstr("\"err\" in line 2, character 1"));
  }
}

TEST(UnknownText, IsSkippedWhereThatIsAsked) {
  for (const Method& method : Methods()) {
    for (const bool with_unknown : {true, false}) {
      EXPECT_THAT(*method.read("text: 'to err be' unknown: UNKNOWN_TEXT_SKIP",
                               WordModel(with_unknown)),
                  ElementsAre(1, 2))
          << method.name;
    }
  }
}

TEST(UnknownText, OfNothingElseHoldsNoToken) {
  for (const Method& method : Methods()) {
    EXPECT_EQ(Refusal(method.read("text: 'err' unknown: UNKNOWN_TEXT_SKIP",
                                  WordModel(true))),
              "INVALID_ARGUMENT FIELD_INVALID text")
        << method.name;
  }
}

TEST(UnknownText, NeedsAnUnknownSymbolWhereThatIsAsked) {
  const std::string asked = " unknown: UNKNOWN_TEXT_SYMBOL";
  for (const Method& method : Methods()) {
    EXPECT_THAT(*method.read("text: 'err be'" + asked, WordModel(true)),
                ElementsAre(0, 2))
        << method.name;
    for (const char* input : {"text: 'to be'", "tokens { ids: 1 }"}) {
      for (const ModelFacts& facts : {WordModel(false), IdModel()}) {
        EXPECT_EQ(Refusal(method.read(input + asked, facts)),
                  "INVALID_ARGUMENT FIELD_INVALID unknown")
            << method.name;
      }
    }
  }
}

TEST(UnknownText, DoesNotConcernTokenIds) {
  for (const Method& method : Methods()) {
    for (const ModelFacts& facts : {WordModel(true), IdModel()}) {
      EXPECT_THAT(*method.read("tokens { ids: [2, 0] } "
                               "unknown: UNKNOWN_TEXT_SKIP",
                               facts),
                  ElementsAre(2, 0))
          << method.name;
    }
  }
}

TEST(UnknownText, OfAnUnlistedValueIsRefused) {
  for (const Method& method : Methods()) {
    for (const int value : {-1, 3, std::numeric_limits<int>::min(),
                            std::numeric_limits<int>::max()}) {
      const std::string unknown = absl::StrCat(" unknown: ", value);
      EXPECT_EQ(Refusal(method.read("text: 'to'" + unknown, WordModel(true))),
                "INVALID_ARGUMENT FIELD_INVALID unknown")
          << method.name << value;
    }
  }
  EXPECT_EQ(Refusal(ReadGenerate(FromText<v1::GenerateRequest>("unknown: 3"),
                                 WordModel(true), {})),
            "INVALID_ARGUMENT FIELD_INVALID unknown");
}

TEST(UnknownText, IsChosenForAllAlternatives) {
  const auto read = [](const std::string& request) {
    return ReadAlternatives(FromText<v1::ScoreAlternativesRequest>(request),
                            WordModel(false), {});
  };
  const std::string skip = "unknown: UNKNOWN_TEXT_SKIP ";
  const std::string first = "alternatives { text: 'to err' } ";
  const auto params = read(skip + first + "alternatives { text: 'or be not' }");
  ASSERT_TRUE(params.ok()) << params.status();
  EXPECT_THAT(params->alternatives, ElementsAre(Ids{1}, Ids{2}));
  EXPECT_EQ(Refusal(read(first)),
            "INVALID_ARGUMENT FIELD_INVALID alternatives[0].text");
  EXPECT_EQ(Refusal(read(skip + first + "alternatives { text: 'or' }")),
            "INVALID_ARGUMENT FIELD_INVALID alternatives[1].text");
}

TEST(UnknownText, IsAskedOfATokenizerToo) {
  const auto read = [](const std::string& request, bool with_unknown) {
    return ReadTokenize(FromText<v1::TokenizeRequest>(request),
                        WordModel(with_unknown), {});
  };
  EXPECT_EQ(Refusal(read("text: 'err'", false)),
            "INVALID_ARGUMENT FIELD_INVALID text");
  EXPECT_THAT(*read("text: 'to err' unknown: UNKNOWN_TEXT_SKIP", false),
              ElementsAre(1));
  EXPECT_THAT(*read("text: 'err' unknown: UNKNOWN_TEXT_SKIP", true), Ids());
  EXPECT_THAT(*read("text: 'err' unknown: UNKNOWN_TEXT_SYMBOL", true),
              ElementsAre(0));
  for (const char* unknown : {"UNKNOWN_TEXT_SYMBOL", "7"}) {
    EXPECT_EQ(Refusal(read(absl::StrCat("unknown: ", unknown), false)),
              "INVALID_ARGUMENT FIELD_INVALID unknown");
  }
}

TEST(UnknownText, HasTheLimitOfAPromptBehindWhatIsSkipped) {
  RequestLimits limits = {.prompt_tokens = 2};
  const auto read = [&](const std::string& text) {
    return Refusal(
        ReadScore(FromText<v1::ScoreRequest>(absl::StrCat(
                      "unknown: UNKNOWN_TEXT_SKIP text: '", text, "'")),
                  WordModel(true), limits));
  };
  EXPECT_EQ(read("err to err be err"), "OK");
  EXPECT_EQ(read("err to err be to"), "INVALID_ARGUMENT OVER_LIMIT text");
}

}  // namespace
}  // namespace txl
