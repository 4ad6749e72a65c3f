#include "model/text/symbol_vocabulary.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

enum : int32_t {
  kEos = 0,
  kUnk = 1,
  kThe = 2,
  kCat = 3,
  kDot = 4,
  kUmlaut = 5
};

std::vector<std::string> Words() {
  return {"<eos>", "<unk>", "the", "cat", ".", "\u00FCber"};
}

// As the WikiText-103 models: any whitespace, <eos> at line ends.
SymbolRules LineRules() {
  SymbolRules rules;
  rules.unknown_id = kUnk;
  rules.line_id = kEos;
  return rules;
}

SymbolRules CharacterRules() {
  SymbolRules rules;
  rules.split = SymbolSplit::kCharacters;
  return rules;
}

std::unique_ptr<SymbolVocabulary> WordVocabulary(SymbolRules rules) {
  return std::make_unique<SymbolVocabulary>("symbols", Words(), rules);
}

std::vector<int32_t> Encoded(SymbolRules rules, absl::string_view text) {
  const auto ids = WordVocabulary(rules)->Encode(text);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return ids.value_or(std::vector<int32_t>{-1});
}

TEST(SymbolVocabulary, KnowsItsSizeKindAndSpellings) {
  const auto vocabulary = WordVocabulary(LineRules());
  EXPECT_EQ(vocabulary->size(), 6);
  EXPECT_EQ(vocabulary->kind(), "symbols");
  EXPECT_EQ(vocabulary->TokenBytes(kEos), "<eos>");
  EXPECT_EQ(vocabulary->TokenBytes(kUmlaut), "\u00FCber");
}

TEST(SymbolVocabulary, SplitsAtAnyRunOfWhitespace) {
  EXPECT_THAT(Encoded(LineRules(), "  the \t cat\u00A0\u3000.\r"),
              ElementsAre(kThe, kCat, kDot));
}

TEST(SymbolVocabulary, SplitsAtSpacesOnlyWhenTheDelimiterIsASpace) {
  SymbolRules rules = LineRules();
  rules.split = SymbolSplit::kSpace;
  EXPECT_THAT(Encoded(rules, "the  cat"), ElementsAre(kThe, kCat));
  EXPECT_THAT(Encoded(rules, "the\tcat ."), ElementsAre(kUnk, kDot));
}

TEST(SymbolVocabulary, EveryLineEndIsALineToken) {
  EXPECT_THAT(Encoded(LineRules(), "the cat\n.\n"),
              ElementsAre(kThe, kCat, kEos, kDot, kEos));
  EXPECT_THAT(Encoded(LineRules(), "\n \nthe"), ElementsAre(kEos, kEos, kThe));
}

TEST(SymbolVocabulary, ALineThatIsNotEndedGetsNoLineToken) {
  EXPECT_THAT(Encoded(LineRules(), "the cat"), ElementsAre(kThe, kCat));
}

TEST(SymbolVocabulary, WithoutALineTokenALineEndIsWhitespace) {
  SymbolRules rules = LineRules();
  rules.line_id.reset();
  EXPECT_THAT(Encoded(rules, "the\ncat\n"), ElementsAre(kThe, kCat));
  rules.split = SymbolSplit::kSpace;
  EXPECT_THAT(Encoded(rules, "the\ncat\n"), ElementsAre(kThe, kCat));
}

TEST(SymbolVocabulary, ASpelledLineTokenIsThatToken) {
  EXPECT_THAT(Encoded(LineRules(), "the <eos> cat"),
              ElementsAre(kThe, kEos, kCat));
}

TEST(SymbolVocabulary, NoTextIsNoToken) {
  EXPECT_THAT(Encoded(LineRules(), ""), IsEmpty());
  EXPECT_THAT(Encoded(LineRules(), "   "), IsEmpty());
}

TEST(SymbolVocabulary, LowersTheCaseWhenAsked) {
  SymbolRules rules = LineRules();
  EXPECT_THAT(Encoded(rules, "The CAT"), ElementsAre(kUnk, kUnk));
  rules.lower_case = true;
  EXPECT_THAT(Encoded(rules, "The CAT \u00DCBER"),
              ElementsAre(kThe, kCat, kUmlaut));
}

TEST(SymbolVocabulary, WithoutAnUnknownSymbolTheFirstMissingPieceIsShown) {
  SymbolRules rules;
  const auto ids = WordVocabulary(rules)->Encode("the dog bit the bird");
  EXPECT_EQ(ids.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(ids.status().message()), HasSubstr("\"dog\""));
}

TEST(SymbolVocabulary, TheMissingPiecesPlaceIsShownInLinesAndCharacters) {
  SymbolRules rules = LineRules();
  rules.unknown_id.reset();
  rules.lower_case = true;
  rules.strips_lines = true;
  const std::string text = "the cat\n  \u00DCBER the D\u00C4CHSIN the";
  const auto vocabulary = WordVocabulary(rules);
  for (const auto& ids :
       {vocabulary->Encode(text), vocabulary->EncodeDocument(text)}) {
    EXPECT_THAT(std::string(ids.status().message()),
                HasSubstr("\"d\u00E4chsin\" in line 2, character 12"));
  }
}

TEST(SymbolVocabulary, ALongMissingPieceIsShownInPartAsValidText) {
  std::string piece;
  for (int i = 0; i < 100000; ++i) piece += "\u20AC";
  const auto ids = WordVocabulary(SymbolRules())->Encode(piece);
  const std::string message(ids.status().message());
  EXPECT_LT(message.size(), 200u);
  EXPECT_TRUE(IsValidUtf8(message));
  EXPECT_THAT(message, HasSubstr("shortened"));
}

TEST(SymbolVocabulary, AMissingControlCharacterIsShownEscaped) {
  const SymbolVocabulary vocabulary("characters", {"a"}, CharacterRules());
  const auto ids = vocabulary.Encode("a\x01");
  EXPECT_THAT(std::string(ids.status().message()), Not(HasSubstr("\x01")));
}

TEST(SymbolVocabulary, IllFormedTextIsRefused) {
  const auto ids = WordVocabulary(LineRules())->Encode("the \xFF");
  EXPECT_EQ(ids.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SymbolVocabulary, CharactersIncludeSpacesAndLineEnds) {
  const SymbolVocabulary vocabulary("characters", {"\n", " ", "a", "\u00E9"},
                                    CharacterRules());
  EXPECT_EQ(vocabulary.kind(), "characters");
  EXPECT_THAT(*vocabulary.Encode(" a\u00E9 \n"), ElementsAre(1, 2, 3, 1, 0));
  EXPECT_EQ(*vocabulary.Decode({1, 2, 3, 1, 0}), " a\u00E9 \n");
}

TEST(SymbolVocabulary, CharactersMayHaveALineTokenAndAnUnknownSymbol) {
  SymbolRules rules = CharacterRules();
  rules.line_id = 0;
  rules.unknown_id = 1;
  const SymbolVocabulary vocabulary("symbols", {"<eos>", "?", "a"}, rules);
  EXPECT_THAT(*vocabulary.Encode("ab\na"), ElementsAre(2, 1, 0, 2));
  EXPECT_EQ(*vocabulary.Decode({2, 0, 2}), "a\na");
}

TEST(SymbolDetokenizer, ASpaceComesWithTheWordAfterIt) {
  const auto vocabulary = WordVocabulary(LineRules());
  const auto detokenizer = vocabulary->NewDetokenizer();
  EXPECT_EQ(detokenizer->Add(kThe), "the");
  EXPECT_EQ(detokenizer->Add(kCat), " cat");
  EXPECT_EQ(detokenizer->Add(kEos), "\n");
  EXPECT_EQ(detokenizer->Add(kUmlaut), "\u00FCber");
  EXPECT_EQ(detokenizer->Add(kDot), " .");
  EXPECT_EQ(detokenizer->Flush(), "");
}

// A session's text goes on over its turns.
TEST(SymbolDetokenizer, AFlushDoesNotForgetTheWordBefore) {
  const auto vocabulary = WordVocabulary(LineRules());
  const auto detokenizer = vocabulary->NewDetokenizer();
  detokenizer->Add(kThe);
  detokenizer->Flush();
  EXPECT_EQ(detokenizer->Add(kCat), " cat");
}

TEST(SymbolDetokenizer, ACloneContinuesOnItsOwn) {
  const auto vocabulary = WordVocabulary(LineRules());
  const auto detokenizer = vocabulary->NewDetokenizer();
  detokenizer->Add(kThe);
  const auto clone = detokenizer->Clone();
  EXPECT_EQ(clone->Add(kEos), "\n");
  EXPECT_EQ(clone->Add(kCat), "cat");
  EXPECT_EQ(detokenizer->Add(kCat), " cat");
}

// Lines joined by "\n", words of a line joined by " ".
std::string JoinedText(const std::vector<int32_t>& ids) {
  std::string text;
  std::string line;
  for (const int32_t id : ids) {
    if (id == kEos) {
      text += line + "\n";
      line.clear();
    } else {
      line += (line.empty() ? "" : " ") + Words()[id];
    }
  }
  return text + line;
}

TEST(SymbolDetokenizer, StreamsRandomIdsAsTheJoinedWordsAndBack) {
  const auto vocabulary = WordVocabulary(LineRules());
  std::mt19937 random(4);
  for (int i = 0; i < 2000; ++i) {
    std::vector<int32_t> ids(random() % 20);
    for (int32_t& id : ids) id = random() % vocabulary->size();
    const auto detokenizer = vocabulary->NewDetokenizer();
    std::string streamed;
    for (const int32_t id : ids) streamed += detokenizer->Add(id);
    streamed += detokenizer->Flush();
    ASSERT_EQ(streamed, JoinedText(ids));
    ASSERT_EQ(*vocabulary->Decode(ids), streamed);
    ASSERT_EQ(*vocabulary->Encode(streamed), ids);
  }
}

}  // namespace
}  // namespace txl
