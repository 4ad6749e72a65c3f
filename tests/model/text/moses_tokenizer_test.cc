#include "model/text/moses_tokenizer.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/text/moses_prefixes.h"
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

std::vector<std::string> Words(const std::string& line) {
  return SplitMosesNumbers(
      MosesWords(NormalizeMosesPunctuation(StripWhitespace(line)), Special()));
}

// The words that the Python port gives for real and for hard lines; the data
// file says which version and how.
TEST(MosesTokenizer, EqualsThePythonPortOnEveryLineOfTheData) {
  const nlohmann::json data = DataJson("moses.json");
  ASSERT_GT(data["lines"].size(), 500u);
  for (const nlohmann::json& line : data["lines"]) {
    EXPECT_EQ(Words(line["text"]),
              line["words"].get<std::vector<std::string>>())
        << line["text"];
  }
}

TEST(MosesTokenizer, CutsPunctuationOffAndDashesAndNumbersOpen) {
  EXPECT_THAT(Words("It's a well-known 3,000.5 \"thing\"."),
              ElementsAre("It", "'s", "a", "well", "@-@", "known", "3", "@,@",
                          "000", "@.@", "5", "\"", "thing", ".", "\""));
}

TEST(MosesTokenizer, AbbreviationsKeepTheirPeriod) {
  EXPECT_THAT(Words("Mr. A. No. 5 No. x U.S. Xyz. the Xyz."),
              ElementsAre("Mr.", "A.", "No.", "5", "No.", "x", "U.S.", "Xyz.",
                          "the", "Xyz", "."));
}

TEST(MosesTokenizer, ProtectedWordsStayWhole) {
  EXPECT_THAT(MosesWords("a <formula> b <FORMULA>", Special()),
              ElementsAre("a", "<formula>", "b", "<FORMULA>"));
  EXPECT_THAT(MosesWords("<x>", Special()), ElementsAre("<", "x", ">"));
}

TEST(MosesTokenizer, NoTextIsNoWord) {
  EXPECT_THAT(Words(""), IsEmpty());
  EXPECT_THAT(Words(" \t\u3000 "), IsEmpty());
}

TEST(MosesTokenizer, ALongLineOfHardTextTakesLinearTime) {
  std::string line;
  for (int i = 0; i < 20000; ++i) line += "'.-,\"( \u00A0";
  EXPECT_GT(Words(line).size(), 20000u);
}

TEST(MosesTokenizer, NormalizesQuotesDashesAndSpaces) {
  EXPECT_EQ(NormalizeMosesPunctuation("\u201Ca\u201D \u2013 b\u2014c\u2026"),
            "\"a\" - b - c...");
  EXPECT_EQ(NormalizeMosesPunctuation("( a ) 5 % x :"), "(a) 5% x:");
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
