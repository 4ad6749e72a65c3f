// What becomes of pieces of text without a symbol, by kind of vocabulary: the
// default and what it is to skip them.

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/text/byte_vocabulary.h"
#include "model/text/digit_vocabulary.h"
#include "model/text/sentencepiece_vocabulary.h"
#include "model/text/symbol_vocabulary.h"
#include "model/text/wikitext_vocabulary.h"
#include "tests/model/text/data_file.h"
#include "tests/model/text/every_vocabulary.h"
#include "tests/model/text/hard_texts.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Ids = std::vector<int32_t>;

constexpr EncodeOptions kSkip = {.skip_unknown = true};

enum : int32_t { kEos, kUnk, kThe, kCat };

std::vector<std::string> Words() { return {"<eos>", "<unk>", "the", "cat"}; }

SymbolRules LineRules() {
  SymbolRules rules;
  rules.unknown_id = kUnk;
  rules.line_id = kEos;
  return rules;
}

SymbolRules StrictRules() {
  SymbolRules rules = LineRules();
  rules.unknown_id.reset();
  return rules;
}

TEST(UnknownWords, BecomeTheUnknownSymbolOrAreSkipped) {
  const SymbolVocabulary vocabulary("symbols", Words(), LineRules());
  EXPECT_TRUE(vocabulary.has_unknown());
  EXPECT_THAT(*vocabulary.Encode("the dog cat\nbird\n"),
              ElementsAre(kThe, kUnk, kCat, kEos, kUnk, kEos));
  EXPECT_THAT(*vocabulary.Encode("the dog cat\nbird\n", kSkip),
              ElementsAre(kThe, kCat, kEos, kEos));
}

TEST(UnknownWords, AreRefusedOrSkippedWithoutAnUnknownSymbol) {
  const SymbolVocabulary vocabulary("symbols", Words(), StrictRules());
  EXPECT_FALSE(vocabulary.has_unknown());
  EXPECT_TRUE(absl::IsInvalidArgument(vocabulary.Encode("the dog").status()));
  EXPECT_THAT(*vocabulary.Encode("the dog cat\nbird\n", kSkip),
              ElementsAre(kThe, kCat, kEos, kEos));
}

TEST(UnknownWords, BecomeTheSymbolThatIsAskedFor) {
  const EncodeOptions cat = {.unknown_id = kCat};
  for (const SymbolRules& rules : {LineRules(), StrictRules()}) {
    EXPECT_THAT(
        *SymbolVocabulary("symbols", Words(), rules).Encode("the dog\n", cat),
        ElementsAre(kThe, kCat, kEos));
  }
  EXPECT_THAT(*DigitVocabulary(4).Encode("1x", {.unknown_id = 3}),
              ElementsAre(1, 3));
}

TEST(UnknownWords, AreCountedOnRequest) {
  std::map<std::string, int64_t> counts;
  const EncodeOptions counting = {.unknown_counts = &counts};
  const SymbolVocabulary words("symbols", Words(), StrictRules());
  EXPECT_THAT(*words.Encode("dog the bird dog", counting), ElementsAre(kThe));
  EXPECT_THAT(*DigitVocabulary(4).Encode("1 9x9", counting), ElementsAre(1));
  EXPECT_EQ(counts, (std::map<std::string, int64_t>{
                        {"9", 2}, {"bird", 1}, {"dog", 2}, {"x", 1}}));
}

TEST(UnknownWords, AreNotWhatSpellsTheUnknownSymbol) {
  const SymbolVocabulary vocabulary("symbols", Words(), LineRules());
  EXPECT_THAT(*vocabulary.Encode("the <unk> dog", kSkip),
              ElementsAre(kThe, kUnk));
}

// There the nothing between two spaces is a piece without a symbol.
TEST(UnknownWords, OfADocumentAreThoseOfTheOriginalCode) {
  SymbolRules rules = LineRules();
  rules.strips_lines = true;
  rules.split = SymbolSplit::kSpace;
  const std::string text = "the  cat dog\ndog";
  const SymbolVocabulary vocabulary("symbols", Words(), rules);
  EXPECT_THAT(*vocabulary.EncodeDocument(text),
              ElementsAre(kThe, kUnk, kCat, kUnk, kEos, kUnk, kEos));
  EXPECT_THAT(*vocabulary.EncodeDocument(text, kSkip),
              ElementsAre(kThe, kCat, kEos, kEos));
  rules.unknown_id.reset();
  EXPECT_THAT(
      *SymbolVocabulary("symbols", Words(), rules).EncodeDocument(text, kSkip),
      ElementsAre(kThe, kCat, kEos, kEos));
}

TEST(UnknownCharacters, AreSkippedOneByOne) {
  SymbolRules rules;
  rules.split = SymbolSplit::kCharacters;
  const SymbolVocabulary vocabulary("characters", {"\n", " ", "a"}, rules);
  EXPECT_FALSE(vocabulary.has_unknown());
  EXPECT_FALSE(vocabulary.Encode("a\u00E9").ok());
  EXPECT_THAT(*vocabulary.Encode("a\u00E9 b\n", kSkip), ElementsAre(2, 1, 0));
}

// As in text8, where "_" is the space and a line end is dropped anyway.
TEST(UnknownCharacters, AreNotTheSpace) {
  SymbolRules rules;
  rules.split = SymbolSplit::kCharacters;
  rules.space_id = 0;
  const SymbolVocabulary vocabulary("characters", {"_", "a"}, rules);
  EXPECT_THAT(*vocabulary.Encode("a\tb a\n", kSkip), ElementsAre(1, 0, 1));
}

TEST(UnknownBytes, AreSkippedOneByOne) {
  const DecimalByteVocabulary vocabulary({'a', 0xC3});
  EXPECT_FALSE(vocabulary.has_unknown());
  EXPECT_FALSE(vocabulary.Encode("ba").ok());
  // U+00E9 is the bytes C3 A9.
  EXPECT_THAT(*vocabulary.Encode("ba\n\u00E9a", kSkip), ElementsAre(0, 1, 0));
  EXPECT_FALSE(ByteVocabulary().has_unknown());
  EXPECT_THAT(*ByteVocabulary().Encode("\u00E9", kSkip),
              ElementsAre(0xC3, 0xA9));
}

TEST(UnknownDigits, AreSkippedOneByOne) {
  const DigitVocabulary vocabulary(5);
  EXPECT_FALSE(vocabulary.has_unknown());
  EXPECT_FALSE(vocabulary.Encode("3 x").ok());
  EXPECT_THAT(*vocabulary.Encode("3 x17\u0663 4", kSkip), ElementsAre(3, 1, 4));
}

TEST(UnknownMosesWords, BecomeTheUnknownSymbolOrAreSkipped) {
  const std::vector<std::string> symbols = {"<eos>", "<unk>", "it",
                                            "'s",    "well",  "."};
  WikitextRules rules;
  rules.unknown_id = 1;
  rules.line_id = 0;
  rules.special = {"<formula>"};  // without a symbol
  const std::string text = "it's raining well. <formula>\nnow";
  const WikitextVocabulary vocabulary(symbols, rules);
  EXPECT_TRUE(vocabulary.has_unknown());
  EXPECT_THAT(*vocabulary.Encode(text), ElementsAre(2, 3, 1, 4, 5, 1, 0, 1));
  EXPECT_THAT(*vocabulary.Encode(text, kSkip), ElementsAre(2, 3, 4, 5, 0));
  EXPECT_THAT(*vocabulary.EncodeDocument(text, kSkip),
              ElementsAre(2, 3, 4, 5, 0, 0));
  rules.unknown_id.reset();
  const WikitextVocabulary strict(symbols, rules);
  EXPECT_FALSE(strict.has_unknown());
  EXPECT_FALSE(strict.Encode(text).ok());
  EXPECT_THAT(*strict.Encode(text, kSkip), ElementsAre(2, 3, 4, 5, 0));
}

// What the original library gives, without its unknown piece: that is 0. The
// model with pieces for bytes has no use for it.
TEST(UnknownPieces, AreThoseOfTheOriginalLibraryOrSkipped) {
  const nlohmann::json data = DataJson("sentencepiece.json");
  size_t with_unknown = 0;
  for (const auto& [name, expected] : data["models"].items()) {
    auto model = ParseSentencePieceModel(DataFile(name));
    ASSERT_TRUE(model.ok()) << model.status();
    ASSERT_EQ(model->unknown_id, 0);
    const auto vocabulary =
        *SentencePieceVocabulary::Create(*std::move(model), expected["size"]);
    EXPECT_TRUE(vocabulary->has_unknown());
    for (const nlohmann::json& c : expected["encode"]) {
      Ids ids = c["ids"].get<Ids>();
      with_unknown += std::erase(ids, 0) > 0;
      EXPECT_EQ(*vocabulary->Encode(c["text"].get<std::string>(), kSkip), ids)
          << name << ": " << c["text"];
    }
  }
  EXPECT_GE(with_unknown, 30u);
}

TEST(SkippedText, IsNeverRefusedAndAddsNothing) {
  for (const NamedVocabulary& each : EveryVocabulary()) {
    for (const std::string& pattern : HardPatterns()) {
      const std::string text = pattern + "\u0416" + pattern;
      const auto skipped = each.vocabulary->Encode(text, kSkip);
      ASSERT_TRUE(skipped.ok()) << each.name << ": " << skipped.status();
      EXPECT_TRUE(each.vocabulary->EncodeDocument(text, kSkip).ok());
      const auto whole = each.vocabulary->Encode(text);
      if (!whole.ok()) continue;
      // In order, what is left of the whole.
      auto at = whole->begin();
      for (const int32_t id : *skipped) {
        at = std::find(at, whole->end(), id);
        ASSERT_NE(at++, whole->end()) << each.name << ": " << text;
      }
    }
  }
}

TEST(SkippedText, NeedsNoRoom) {
  const SymbolVocabulary vocabulary("symbols", Words(), LineRules());
  const EncodeOptions two = {.max_tokens = 2, .skip_unknown = true};
  EXPECT_THAT(*vocabulary.Encode("dog the dog dog cat dog", two),
              ElementsAre(kThe, kCat));
  EXPECT_EQ(vocabulary.Encode("the dog cat the", two).status(),
            absl::OutOfRangeError("more than 2 tokens"));
  const EncodeOptions none = {.max_tokens = 0, .skip_unknown = true};
  EXPECT_THAT(*vocabulary.Encode("dog bird", none), IsEmpty());
  SymbolRules rules = LineRules();
  rules.strips_lines = true;
  EXPECT_EQ(SymbolVocabulary("symbols", Words(), rules)
                .EncodeDocument("the cat", two)
                .status(),
            absl::OutOfRangeError("more than 2 tokens"));
}

TEST(SkippedText, IsStillToBeValid) {
  for (const NamedVocabulary& each : EveryVocabulary()) {
    if (each.vocabulary->Encode("\xFF").ok())
      continue;  // vocabularies of bytes
    EXPECT_FALSE(each.vocabulary->Encode("\xFF", kSkip).ok()) << each.name;
  }
}

}  // namespace
}  // namespace txl
