#include "model/text/wikitext_vocabulary.h"

#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/text/utf8.h"
#include "tests/model/text/data_file.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

enum : int32_t {
  kLine,
  kUnknown,
  kIt,
  kIs,
  kWell,
  kJoin,
  kKnown,
  kDot,
  kFormula
};

std::vector<std::string> Symbols() {
  return {"<eos>", "<unk>", "it", "'s",       "well",
          "@-@",   "known", ".",  "<formula>"};
}

WikitextRules Rules() {
  return {.unknown_id = kUnknown, .line_id = kLine, .special = {"<formula>"}};
}

TEST(WikitextVocabulary, CutsPlainTextIntoItsWords) {
  const WikitextVocabulary vocabulary(Symbols(), Rules());
  EXPECT_EQ(vocabulary.kind(), "wikitext");
  EXPECT_EQ(vocabulary.size(), 9);
  EXPECT_THAT(*vocabulary.Encode("it's well-known."),
              ElementsAre(kIt, kIs, kWell, kJoin, kKnown, kDot));
}

TEST(WikitextVocabulary, LineEndsAreTheLineToken) {
  const WikitextVocabulary vocabulary(Symbols(), Rules());
  EXPECT_THAT(*vocabulary.Encode("\n it \n\nwell"),
              ElementsAre(kLine, kIt, kLine, kLine, kWell));
  EXPECT_THAT(*vocabulary.EncodeDocument("it\r\nwell"),
              ElementsAre(kIt, kLine, kWell, kLine));
}

TEST(WikitextVocabulary, TextOnEachSideOfASpecialSymbolIsCutOnItsOwn) {
  const WikitextVocabulary vocabulary(Symbols(), Rules());
  EXPECT_THAT(*vocabulary.Encode("it<unk>known <formula>. <eos>it"),
              ElementsAre(kIt, kUnknown, kKnown, kFormula, kDot, kLine, kIt));
}

// As the original does: it looks for special symbols as they are spelled, and
// keeps what looks like one in any case whole.
TEST(WikitextVocabulary, ASpecialSymbolInOtherCaseIsOneUnknownWord) {
  const WikitextVocabulary vocabulary(Symbols(), Rules());
  EXPECT_THAT(*vocabulary.Encode("it <FORMULA> <EOS>"),
              ElementsAre(kIt, kUnknown, kUnknown));
}

TEST(WikitextVocabulary, OfSpecialSymbolsAtAPlaceTheLongestCounts) {
  WikitextRules rules = Rules();
  rules.special = {"<formula>", "<form", "<formula>"};
  const WikitextVocabulary vocabulary(Symbols(), rules);
  EXPECT_THAT(*vocabulary.Encode("<formula><form"),
              ElementsAre(kFormula, kUnknown));
}

// Text is cut in batches of lines; none shows.
TEST(WikitextVocabulary, LongTextHasTheIdsOfItsLines) {
  const WikitextVocabulary vocabulary(Symbols(), Rules());
  const std::vector<std::string> lines = {"it's well-known.",
                                          "",
                                          "<unk>it <formula>.'<FORMULA>",
                                          "known,",
                                          "'s",
                                          "(it",
                                          "Mr.",
                                          " . ",
                                          "<eos>"};
  std::string text;
  std::vector<int32_t> expected;
  for (int i = 0; i < 20'000; ++i) {
    const std::string& line = lines[i * 7 % 64 % lines.size()];
    text += line + "\n";
    const auto ids = vocabulary.Encode(line);
    ASSERT_TRUE(ids.ok());
    expected.insert(expected.end(), ids->begin(), ids->end());
    expected.push_back(kLine);
  }
  EXPECT_EQ(*vocabulary.Encode(text), expected);
  EXPECT_EQ(*vocabulary.EncodeDocument(text), expected);
}

TEST(WikitextVocabulary, WithoutALineTokenALineEndIsASpace) {
  WikitextRules rules = Rules();
  rules.line_id.reset();
  const WikitextVocabulary vocabulary(Symbols(), rules);
  EXPECT_THAT(*vocabulary.Encode("it's\nwell\n-known\n."),
              ElementsAre(kIt, kIs, kWell, kUnknown, kDot));
}

TEST(WikitextVocabulary, LowersTheCaseWhenAsked) {
  WikitextRules rules = Rules();
  rules.lower_case = true;
  const WikitextVocabulary vocabulary(Symbols(), rules);
  EXPECT_THAT(*vocabulary.Encode("IT'S Known"), ElementsAre(kIt, kIs, kKnown));
}

TEST(WikitextVocabulary, AWordWithoutASymbolIsShownWhenNoneIsUnknown) {
  WikitextRules rules = Rules();
  rules.unknown_id.reset();
  const WikitextVocabulary vocabulary(Symbols(), rules);
  const auto ids = vocabulary.Encode("it was");
  EXPECT_EQ(ids.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(ids.status().message()), HasSubstr("\"was\""));
  EXPECT_FALSE(vocabulary.Encode("\xFF").ok());
  EXPECT_FALSE(vocabulary.EncodeDocument("\xFF").ok());
}

TEST(WikitextVocabulary, PutsTextTogetherLineByLine) {
  const WikitextVocabulary vocabulary(Symbols(), Rules());
  EXPECT_EQ(*vocabulary.Decode({kIt, kIs, kWell, kJoin, kKnown, kDot, kLine,
                                kKnown, kUnknown}),
            "it's well-known.\nknown <unk>");
}

// A vocabulary of all words of the data: text that the rules make of words is
// cut into the same words again, and streams in any pieces and clones.
TEST(WikitextVocabulary, RealLinesComeBackAndStream) {
  const nlohmann::json data = DataJson("moses.json");
  std::set<std::string> words = {"<eos>", "<unk>"};
  for (const auto& line : data["lines"]) {
    for (const std::string word : line["words"]) words.insert(word);
  }
  WikitextRules rules;
  rules.line_id = 0;
  std::vector<std::string> symbols = {"<eos>"};
  words.erase("<eos>");
  symbols.insert(symbols.end(), words.begin(), words.end());
  const WikitextVocabulary vocabulary(symbols, rules);
  std::mt19937 random(5);
  int same = 0;
  for (const auto& line : data["lines"]) {
    const auto ids = vocabulary.Encode(line["text"].get<std::string>());
    if (!ids.ok()) continue;  // without special symbols other words come out
    auto detokenizer = vocabulary.NewDetokenizer();
    std::string streamed;
    for (const int32_t id : *ids) {
      if (random() % 3 == 0) detokenizer = detokenizer->Clone();
      const std::string piece = detokenizer->Add(id);
      ASSERT_TRUE(IsValidUtf8(piece));
      streamed += piece;
    }
    streamed += detokenizer->Flush();
    ASSERT_EQ(streamed, *vocabulary.Decode(*ids));
    same += streamed == line["text"];
  }
  EXPECT_GT(same, 100);  // most lines of the play; hard ones lose their spacing
}

}  // namespace
}  // namespace txl
