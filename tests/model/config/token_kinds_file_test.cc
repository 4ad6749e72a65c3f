#include "model/config/token_kinds_file.h"

#include <ostream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

constexpr int64_t kKindsVocabulary = 20;
constexpr char kMusic[] = R"({"kinds": {
  "Position": {"tokens": [[1, 3], 7], "next": ["Note"],
               "next_temperature": 0.9},
  "Bar": {"tokens": [0], "next": ["Bar", "Position"]},
  "Note": {"tokens": [4, 5, 6]}
}})";

TEST(ParseTokenKinds, ReadsKindsInTheOrderOfTheirNames) {
  const auto table = ParseTokenKinds(kMusic, "kinds.json", kKindsVocabulary);
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->kinds().size(), 3u);
  const TokenKind& bar = table->kinds()[0];
  const TokenKind& note = table->kinds()[1];
  const TokenKind& position = table->kinds()[2];
  EXPECT_EQ(bar.name, "Bar");
  EXPECT_THAT(bar.tokens, ElementsAre(Pair(0, 0)));
  EXPECT_THAT(*bar.next, ElementsAre("Bar", "Position"));
  EXPECT_EQ(bar.next_temperature, 1);
  EXPECT_EQ(note.name, "Note");
  EXPECT_THAT(note.tokens, ElementsAre(Pair(4, 4), Pair(5, 5), Pair(6, 6)));
  EXPECT_FALSE(note.next.has_value());
  EXPECT_THAT(position.tokens, ElementsAre(Pair(1, 3), Pair(7, 7)));
  EXPECT_EQ(position.next_temperature, 0.9);
  EXPECT_EQ(table->KindOf(2), 2);
  EXPECT_EQ(table->KindOf(8), kNoTokenKind);
}

TEST(ParseTokenKinds, WrittenAndReadAgainTheyAreTheSame) {
  const auto table = ParseTokenKinds(kMusic, "kinds.json", kKindsVocabulary);
  ASSERT_TRUE(table.ok());
  const std::string written = TokenKindsToJson(table->kinds());
  EXPECT_EQ(written,
            "{\"kinds\": {\n"
            "  \"Bar\": {\"tokens\":[0],\"next\":[\"Bar\",\"Position\"]},\n"
            "  \"Note\": {\"tokens\":[4,5,6]},\n"
            "  \"Position\": {\"tokens\":[[1,3],7],\"next\":[\"Note\"],"
            "\"next_temperature\":0.9}\n"
            "}}\n");
  const auto again = ParseTokenKinds(written, "kinds.json", kKindsVocabulary);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(TokenKindsToJson(again->kinds()), written);
  EXPECT_EQ(again->kind_of(), table->kind_of());
}

TEST(ParseTokenKinds, NoKindsAreNone) {
  const auto table = ParseTokenKinds(R"({"kinds": {}})", "k", kKindsVocabulary);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_TRUE(table->kinds().empty());
}

struct BadFile {
  const char* name;
  const char* text;
  const char* field;
};

std::ostream& operator<<(std::ostream& out, const BadFile& bad) {
  return out << bad.text;
}

constexpr BadFile kBadFiles[] = {
    {"NoObject", "[]", "is not a JSON object"},
    {"CutOff", R"({"kinds": )", ""},
    {"NoKinds", "{}", "field kinds must"},
    {"KindsAsList", R"({"kinds": []})", "field kinds must be an object"},
    {"Misspelt", R"({"kinds": {}, "kind": {}})", "field kind is unknown"},
    {"KindAsList", R"({"kinds": {"A": [1]}})", "field kinds.A must"},
    {"KindAsNull", R"({"kinds": {"A": null}})", "field kinds.A must"},
    {"KindTwice", R"({"kinds": {"A": {"tokens": [1]}, "A": {"tokens": [2]}}})",
     "A"},
    {"FieldMisspelt", R"({"kinds": {"A": {"tokens": [1], "nxt": ["A"]}}})",
     "field kinds.A.nxt is unknown"},
    {"NoTokens", R"({"kinds": {"A": {"next": ["A"]}}})",
     "field kinds.A.tokens must"},
    {"TokensAsNumber", R"({"kinds": {"A": {"tokens": 1}}})",
     "field kinds.A.tokens must"},
    {"TokenAsText", R"({"kinds": {"A": {"tokens": ["1"]}}})",
     "field kinds.A.tokens must"},
    {"TokenWithFraction", R"({"kinds": {"A": {"tokens": [1.5]}}})",
     "field kinds.A.tokens must"},
    {"NegativeToken", R"({"kinds": {"A": {"tokens": [-1]}}})",
     "field kinds.A.tokens must"},
    {"TokenBeyondInt32", R"({"kinds": {"A": {"tokens": [4294967296]}}})",
     "field kinds.A.tokens must"},
    {"TokenBeyondInt64",
     R"({"kinds": {"A": {"tokens": [18446744073709551615]}}})",
     "field kinds.A.tokens must"},
    {"RangeOfThree", R"({"kinds": {"A": {"tokens": [[1, 2, 3]]}}})",
     "field kinds.A.tokens must"},
    {"TokenBeyondVocabulary", R"({"kinds": {"A": {"tokens": [20]}}})",
     "field kinds.A.tokens: 20 to 20"},
    {"TokenInTwoKinds",
     R"({"kinds": {"A": {"tokens": [1]}, "B": {"tokens": [[0, 1]]}}})",
     "field kinds.B.tokens: id 1 is in kind A, too"},
    {"NextAsText", R"({"kinds": {"A": {"tokens": [1], "next": "A"}}})",
     "field kinds.A.next must"},
    {"NextEmpty", R"({"kinds": {"A": {"tokens": [1], "next": []}}})",
     "field kinds.A.next: names no kind"},
    {"NextOfNoKind", R"({"kinds": {"A": {"tokens": [1], "next": ["B"]}}})",
     "field kinds.A.next: no kind is named B"},
    {"TemperatureAsText",
     R"({"kinds": {"A": {"tokens": [1], "next_temperature": "1"}}})",
     "field kinds.A.next_temperature must"},
    {"TemperatureZero",
     R"({"kinds": {"A": {"tokens": [1], "next_temperature": 0}}})",
     "field kinds.A.next_temperature: must"},
    {"NameWithoutLetters", R"({"kinds": {"": {"tokens": [1]}}})",
     "field kinds: the name of a kind is empty"},
};

class BadKindsFile : public testing::TestWithParam<BadFile> {};

TEST_P(BadKindsFile, IsRefusedNamingFileAndField) {
  const absl::Status status =
      ParseTokenKinds(GetParam().text, "m/kinds.json", kKindsVocabulary)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), StartsWith("m/kinds.json: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().field));
}

INSTANTIATE_TEST_SUITE_P(All, BadKindsFile, testing::ValuesIn(kBadFiles),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace txl
