#include "model/text/moses_tokenizer.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/text/moses_classes.h"
#include "model/text/utf8.h"
#include "tests/model/text/data_file.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string>& Special() {
  static const auto& special =
      *new std::vector<std::string>{"<eos>", "<unk>", "<formula>"};
  return special;
}

std::vector<std::string> WordsOf(const std::string& line) {
  return SplitMosesNumbers(
      MosesWords(NormalizeMosesPunctuation(StripWhitespace(line)), Special()));
}

// The words that the Python port gives for real and for hard lines; the data
// file says which version and how.
TEST(MosesTokenizer, EqualsThePythonPortOnEveryLineOfTheData) {
  const nlohmann::json data = DataJson("moses.json");
  ASSERT_GT(data["lines"].size(), 500u);
  for (const nlohmann::json& line : data["lines"]) {
    EXPECT_EQ(WordsOf(line["text"]),
              line["words"].get<std::vector<std::string>>())
        << line["text"];
  }
}

// One text of many lines has the words of each of them.
TEST(MosesTokenizer, EveryLineOfATextIsCutAsIfItWereAlone) {
  const nlohmann::json data = DataJson("moses.json");
  std::string text;
  std::vector<std::string> expected;
  for (const nlohmann::json& line : data["lines"]) {
    std::string one = line["text"];
    if (one.find('\n') != std::string::npos) continue;
    text += one + "\n";
    for (const nlohmann::json& word : line["words"]) expected.push_back(word);
    expected.push_back("\n");
  }
  ASSERT_GT(expected.size(), 5000u);
  EXPECT_EQ(WordsOf(text + "end"), [&] {
    expected.push_back("end");
    return expected;
  }());
}

TEST(MosesTokenizer, ARuleSeesNoNeighbouringLine) {
  EXPECT_THAT(WordsOf("a,\n5 '\nMr.\nx.'\n.'\n\n,\nb"),
              ElementsAre("a", ",", "\n", "5", "'", "\n", "Mr.", "\n", "x", ".",
                          "'", "\n", ".", "'", "\n", "\n", ",", "\n", "b"));
}

TEST(MosesTokenizer, CutsPunctuationOffAndDashesAndNumbersOpen) {
  EXPECT_THAT(WordsOf("It's a well-known 3,000.5 \"thing\"."),
              ElementsAre("It", "'s", "a", "well", "@-@", "known", "3", "@,@",
                          "000", "@.@", "5", "\"", "thing", ".", "\""));
}

TEST(MosesTokenizer, AbbreviationsKeepTheirPeriod) {
  EXPECT_THAT(WordsOf("Mr. A. No. 5 No. x U.S. Xyz. the Xyz."),
              ElementsAre("Mr.", "A.", "No.", "5", "No.", "x", "U.S.", "Xyz.",
                          "the", "Xyz", "."));
}

TEST(MosesTokenizer, ProtectedWordsStayWhole) {
  EXPECT_THAT(MosesWords("a <formula> b <FORMULA>", Special()),
              ElementsAre("a", "<formula>", "b", "<FORMULA>"));
  EXPECT_THAT(MosesWords("<x>", Special()), ElementsAre("<", "x", ">"));
}

// What stands for a protected word cannot be in the text: every letter of a
// script cannot use it up, and its own bytes are dropped before.
TEST(MosesTokenizer, NoTextPassesForAProtectedWord) {
  std::string all_yi;
  for (int c = 0xA000; c <= 0xA48C; ++c) {
    all_yi += {static_cast<char>(0xE0 | c >> 12),
               static_cast<char>(0x80 | (c >> 6 & 0x3F)),
               static_cast<char>(0x80 | (c & 0x3F))};
  }
  const std::string last = "\uA48C";
  EXPECT_THAT(
      MosesWords(all_yi + " " + last + "0 " + last + "0 <UNK>", Special()),
      ElementsAre(all_yi, last + "0", last + "0", "<UNK>"));
  EXPECT_THAT(MosesWords("a\x01\x02 \x01\x02 <unk>\x01\x02<UNK>", Special()),
              ElementsAre("a", "<unk><UNK>"));
}

TEST(MosesTokenizer, ManyProtectedWordsInOneWordAllComeBack) {
  EXPECT_THAT(MosesWords("x<unk><UNK><eos>. <formula>'s", Special()),
              ElementsAre("x<unk><UNK><eos>", ".", "<formula>", "'s"));
}

TEST(MosesTokenizer, NoTextIsNoWord) {
  EXPECT_THAT(WordsOf(""), IsEmpty());
  EXPECT_THAT(WordsOf(" \t\u3000 "), IsEmpty());
}

TEST(MosesTokenizer, ALongLineOfHardTextTakesLinearTime) {
  std::string line;
  for (int i = 0; i < 20000; ++i) line += "'.-,\"( \u00A0";
  EXPECT_GT(WordsOf(line).size(), 20000u);
}

TEST(MosesTokenizer, NormalizesQuotesDashesAndSpaces) {
  EXPECT_EQ(NormalizeMosesPunctuation("\u201Ca\u201D \u2013 b\u2014c\u2026"),
            "\"a\" - b - c...");
  EXPECT_EQ(NormalizeMosesPunctuation("( a ) 5 % x :"), " (a) 5% x:");
  EXPECT_EQ(NormalizeMosesPunctuation("\u2018it\u2019s\u2019"), "'it's'");
  EXPECT_EQ(NormalizeMosesPunctuation("\"end\"."), "\"end.\"");
  EXPECT_EQ(NormalizeMosesPunctuation("1\u00A0"
                                      "000"),
            "1.000");
}

TEST(MosesPrefixes, KnowsTitlesMonthsAndCapitals) {
  for (const char* word : {"Mr", "Dec", "A", "Z", "v", "e.g", "Messrs"}) {
    EXPECT_TRUE(IsMosesPrefix(word)) << word;
  }
  for (const char* word : {"", "mr", "a", "No", "word", "Mr."}) {
    EXPECT_FALSE(IsMosesPrefix(word)) << word;
  }
  EXPECT_TRUE(IsMosesNumberPrefix("No"));
  EXPECT_FALSE(IsMosesNumberPrefix("Mr"));
}

}  // namespace
}  // namespace txl
