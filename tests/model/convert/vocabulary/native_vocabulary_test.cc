#include "model/convert/vocabulary/native_vocabulary.h"

#include <nlohmann/json.hpp>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using json = nlohmann::json;

std::string ErrorOf(const json& data) {
  return std::string(VocabularyFromData(data).status().message());
}

TEST(VocabularyFromData, ReadsAVocabObjectWithItsAttributes) {
  const auto vocabulary = VocabularyFromData(
      {{"__class__", "utils.vocabulary.Vocab"},
       {"idx2sym", {"<eos>", "the"}},
       {"lower_case", true},
       {"delimiter", " "},
       {"unk_idx", 1},
       {"moses_tokenizer", {{"__class__", "sacremoses.MosesTokenizer"}}}});
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_THAT(vocabulary->symbols, ElementsAre("<eos>", "the"));
  EXPECT_EQ(vocabulary->lower_case, true);
  EXPECT_EQ(vocabulary->delimiter, " ");
  EXPECT_EQ(vocabulary->unknown_id, 1);
  EXPECT_FALSE(vocabulary->events);
}

TEST(VocabularyFromData, ANullDelimiterIsAnyWhitespace) {
  const auto vocabulary =
      VocabularyFromData({{"idx2sym", {"a"}}, {"delimiter", nullptr}});
  EXPECT_EQ(vocabulary->delimiter, std::nullopt);
  EXPECT_EQ(vocabulary->lower_case, std::nullopt);
}

TEST(VocabularyFromData, FindsTheVocabInsideACorpus) {
  const json corpus = {{"__class__", "data_utils.Corpus"},
                       {"dataset", "wt103"},
                       {"vocab", {{"idx2sym", {"a", "b"}}}}};
  EXPECT_TRUE(HoldsVocabObject(corpus));
  EXPECT_THAT(VocabularyFromData(corpus)->symbols, ElementsAre("a", "b"));
  EXPECT_FALSE(HoldsVocabObject({{"vocab", 7}}));
  EXPECT_FALSE(HoldsVocabObject({{"epoch", 7}}));
}

TEST(VocabularyFromData, APairOfDictionariesIsOneOfEvents) {
  const auto vocabulary =
      VocabularyFromData({{{"Bar_None", 0}, {"Beat_0", 2}, {"A", 1}},
                          {{"0", "Bar_None"}, {"1", "A"}, {"2", "Beat_0"}}});
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_TRUE(vocabulary->events);
  EXPECT_THAT(vocabulary->symbols, ElementsAre("Bar_None", "A", "Beat_0"));
}

TEST(VocabularyFromData, DictionariesAndListsOfNamesWillDo) {
  EXPECT_THAT(VocabularyFromData({{"b", 0}, {"a", 1}})->symbols,
              ElementsAre("b", "a"));
  EXPECT_THAT(VocabularyFromData({"x", "y", "z"})->symbols,
              ElementsAre("x", "y", "z"));
  EXPECT_THAT(VocabularyFromData({{"itos", {"p", "q"}}})->symbols,
              ElementsAre("p", "q"));
}

TEST(VocabularyFromData, IdsMustBeZeroToTheLast) {
  EXPECT_THAT(ErrorOf({{"a", 0}, {"b", 2}}), HasSubstr("0 to 1"));
  EXPECT_THAT(ErrorOf({{"a", 0}, {"b", 0}}), HasSubstr("twice"));
  EXPECT_THAT(ErrorOf({{"a", 0}, {"b", -1}}), HasSubstr("found -1"));
}

TEST(VocabularyFromData, OtherDataIsRefused) {
  for (const json& data : {json(1950), json(nullptr), json::object(),
                           json::array(), json{1, 2}, json{{"a", "b"}}}) {
    EXPECT_THAT(ErrorOf(data), HasSubstr("no vocabulary")) << data;
  }
  EXPECT_THAT(ErrorOf({{"idx2sym", {"a", 1}}}), HasSubstr("entry 1"));
}

TEST(VocabularyFromLines, TakesTheFirstFieldOfALine) {
  EXPECT_THAT(
      VocabularyFromLines("<eos>\nthe 1061396\n\tof\t5\nand\r\nlast")->symbols,
      ElementsAre("<eos>", "the", "of", "and", "last"));
}

TEST(VocabularyFromLines, ALineOfASpaceIsTheSpace) {
  EXPECT_THAT(VocabularyFromLines("a\n \nb\n")->symbols,
              ElementsAre("a", " ", "b"));
}

// The original code gives a repeated symbol no second id.
TEST(VocabularyFromLines, ARepeatedSymbolIsSkipped) {
  EXPECT_THAT(VocabularyFromLines("a\nb\na\nc\n")->symbols,
              ElementsAre("a", "b", "c"));
}

TEST(VocabularyFromLines, AnEmptyLineIsNamed) {
  EXPECT_THAT(std::string(VocabularyFromLines("a\n\nb\n").status().message()),
              HasSubstr("line 2"));
}

TEST(RepairSymbols, Utf8ThatWasReadAsLatin1IsPutRight) {
  // "café", an en dash and "a" as they look then.
  const auto repaired =
      RepairSymbols({"caf\u00C3\u00A9", "\u00E2\u0080\u0093", "a"});
  ASSERT_TRUE(repaired.ok()) << repaired.status();
  EXPECT_THAT(repaired->symbols, ElementsAre("caf\u00E9", "\u2013", "a"));
  EXPECT_EQ(repaired->from_latin1, 2);
}

TEST(RepairSymbols, ProperTextIsLeftAlone) {
  const auto repaired =
      RepairSymbols({"caf\u00E9", "\u4E2D", "na\u00EFve", "\u00C3\u00A9"});
  EXPECT_THAT(repaired->symbols,
              ElementsAre("caf\u00E9", "\u4E2D", "na\u00EFve", "\u00C3\u00A9"));
  EXPECT_EQ(repaired->from_latin1, 0);
}

TEST(RepairSymbols, ARepairThatWouldRepeatASymbolIsNotMade) {
  const auto repaired =
      RepairSymbols({"\u2013", "\u00E2\u0080\u0093", "b", "\u00C3\u00A9"});
  EXPECT_THAT(repaired->symbols,
              ElementsAre("\u2013", "\u00E2\u0080\u0093", "b", "\u00E9"));
  EXPECT_EQ(repaired->from_latin1, 1);
}

TEST(RepairSymbols, IllFormedSymbolsAreEscaped) {
  const auto repaired = RepairSymbols({"a", "b\xFF"});
  EXPECT_THAT(repaired->symbols, ElementsAre("a", "b\\xff"));
  EXPECT_EQ(repaired->escaped, 1);
}

TEST(RepairSymbols, EmptyAndRepeatedSymbolsAreNamed) {
  EXPECT_THAT(std::string(RepairSymbols({"a", ""}).status().message()),
              HasSubstr("symbol 1: is empty"));
  EXPECT_THAT(std::string(RepairSymbols({"a", "b", "a"}).status().message()),
              HasSubstr("symbol 2"));
}

}  // namespace
}  // namespace txl
