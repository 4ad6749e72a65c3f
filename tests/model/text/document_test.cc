// Whole files as the original code reads them, and pieces of a stream.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/text/symbol_vocabulary.h"
#include "tests/model/text/data_file.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using json = nlohmann::json;

int32_t IdOf(const std::vector<std::string>& symbols,
             const std::string& symbol) {
  return static_cast<int32_t>(
      std::find(symbols.begin(), symbols.end(), symbol) - symbols.begin());
}

SymbolRules RulesOf(const json& c, const std::vector<std::string>& symbols) {
  SymbolRules rules;
  rules.strips_lines = true;
  rules.lower_case = c["lower_case"];
  rules.double_line_tokens = c["double"];
  if (c["delimiter"] == "") rules.split = SymbolSplit::kCharacters;
  if (c["delimiter"] == " ") rules.split = SymbolSplit::kSpace;
  if (c["line_token"].is_string()) {
    rules.line_id = IdOf(symbols, c["line_token"]);
  }
  rules.unknown_id = 0;
  return rules;
}

// The vocabulary has every symbol of the case but the empty one, which splits
// at single spaces make: it is unknown.
TEST(Documents, GiveTheTokensOfTheOriginalCode) {
  const json data = DataJson("original_vocab.json");
  ASSERT_EQ(data["cases"].size(), 700u);
  for (const json& c : data["cases"]) {
    std::vector<std::string> symbols = {"<unk>"};
    std::vector<int32_t> expected;
    for (const std::string token : c["tokens"]) {
      if (!token.empty() &&
          IdOf(symbols, token) == static_cast<int32_t>(symbols.size())) {
        symbols.push_back(token);
      }
      expected.push_back(token.empty() ? 0 : IdOf(symbols, token));
    }
    for (const char* line_token : {"<eos>", "<S>"}) {
      if (IdOf(symbols, line_token) == static_cast<int32_t>(symbols.size())) {
        symbols.push_back(line_token);
      }
    }
    const SymbolVocabulary vocabulary("symbols", symbols, RulesOf(c, symbols));
    const auto ids = vocabulary.EncodeDocument(c["text"].get<std::string>());
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, expected) << c;
  }
}

std::vector<std::string> FourWords() { return {"<eos>", "<unk>", "a", "b"}; }

SymbolRules DocumentRules() {
  SymbolRules rules;
  rules.strips_lines = true;
  rules.line_id = 0;
  rules.unknown_id = 1;
  return rules;
}

TEST(Documents, EndTheirLastLineWhichAStreamLeavesOpen) {
  const SymbolVocabulary vocabulary("symbols", FourWords(), DocumentRules());
  EXPECT_THAT(*vocabulary.EncodeDocument("a\nb"), ElementsAre(2, 0, 3, 0));
  EXPECT_THAT(*vocabulary.Encode("a\nb"), ElementsAre(2, 0, 3));
}

// A turn that ends in the middle of a line is continued by the next.
TEST(Documents, OfWholeLinesAreTheStreamsOfTheirPieces) {
  const SymbolVocabulary vocabulary("symbols", FourWords(), DocumentRules());
  const std::string text = "a b\n\n b a\na\n";
  std::vector<int32_t> streamed;
  for (const char* piece : {"a", " b\n", "\n b", " a\na", "\n"}) {
    const std::vector<int32_t> ids = *vocabulary.Encode(piece);
    streamed.insert(streamed.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(streamed, *vocabulary.EncodeDocument(text));
}

TEST(Documents, OfCharactersKeepTheirLineEnds) {
  SymbolRules rules;
  rules.split = SymbolSplit::kCharacters;
  const SymbolVocabulary vocabulary("characters", {"\n", " ", "a"}, rules);
  EXPECT_THAT(*vocabulary.EncodeDocument(" a\n\n"), ElementsAre(1, 2, 0, 0));
}

TEST(Documents, WithoutAnUnknownSymbolTwoSpacesAreAnError) {
  SymbolRules rules;
  rules.strips_lines = true;
  rules.split = SymbolSplit::kSpace;
  const SymbolVocabulary vocabulary("symbols", {"a"}, rules);
  EXPECT_FALSE(vocabulary.EncodeDocument("a  a").ok());
  EXPECT_THAT(*vocabulary.Encode("a  a"), ElementsAre(0, 0));
}

SymbolRules DoubleRules() {
  SymbolRules rules = DocumentRules();
  rules.double_line_tokens = true;
  return rules;
}

TEST(DoubleLineTokens, StandOnBothSidesOfADocumentsLines) {
  const SymbolVocabulary vocabulary("symbols", FourWords(), DoubleRules());
  EXPECT_THAT(*vocabulary.EncodeDocument("a\nb\n"),
              ElementsAre(0, 2, 0, 0, 3, 0));
}

TEST(DoubleLineTokens, AreTwoAtALineBreakOfAStream) {
  const SymbolVocabulary vocabulary("symbols", FourWords(), DoubleRules());
  EXPECT_THAT(*vocabulary.Encode("a\nb"), ElementsAre(2, 0, 0, 3));
}

TEST(DoubleLineTokens, MakeOneLineBreakOfTwo) {
  const SymbolVocabulary vocabulary("symbols", FourWords(), DoubleRules());
  EXPECT_EQ(*vocabulary.Decode({0, 2, 3, 0, 0, 3, 0}), "a b\nb\n");
  EXPECT_EQ(*vocabulary.Decode({2, 0, 0, 3}), "a\nb");
  EXPECT_EQ(*vocabulary.Decode(*vocabulary.Encode("a\n\nb\n")), "a\n\nb\n");
}

SymbolRules Text8Rules() {
  SymbolRules rules;
  rules.split = SymbolSplit::kCharacters;
  rules.space_id = 0;
  return rules;
}

TEST(SpaceSymbol, StandsForTheSpaceBothWays) {
  const SymbolVocabulary vocabulary("characters", {"_", "a", "b"},
                                    Text8Rules());
  EXPECT_THAT(*vocabulary.Encode("a b_a"), ElementsAre(1, 0, 2, 0, 1));
  EXPECT_EQ(*vocabulary.Decode({1, 0, 2}), "a b");
  EXPECT_EQ(vocabulary.TokenBytes(0), "_");
}

TEST(SpaceSymbol, LineBreaksWithoutASymbolAreDropped) {
  const SymbolVocabulary vocabulary("characters", {"_", "a", "b"},
                                    Text8Rules());
  EXPECT_THAT(*vocabulary.Encode("a\nb\n"), ElementsAre(1, 2));
  EXPECT_FALSE(vocabulary.Encode("a\tb").ok());
}

}  // namespace
}  // namespace txl
