#include "model/text/moses_detokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model/text/utf8.h"
#include "tests/model/text/data_file.h"

namespace txl {
namespace {

std::string Text(const std::vector<std::string>& words) {
  MosesDetokenizer detokenizer;
  std::string text;
  for (const std::string& word : words) {
    const std::string piece = detokenizer.Add(word);
    EXPECT_TRUE(IsValidUtf8(piece));
    text += piece;
  }
  return text + detokenizer.Flush();
}

// What the Python port makes of all words at once, streamed word by word.
TEST(MosesDetokenizer, EqualsThePythonPortOnTheWordsOfRealLines) {
  const nlohmann::json data = DataJson("moses.json");
  for (const nlohmann::json& line : data["lines"]) {
    EXPECT_EQ(Text(line["words"]), line["detokenized"]) << line["words"];
  }
}

TEST(MosesDetokenizer, EqualsThePythonPortOnRandomSequences) {
  const nlohmann::json data = DataJson("moses.json");
  ASSERT_GT(data["sequences"].size(), 500u);
  for (const nlohmann::json& sequence : data["sequences"]) {
    EXPECT_EQ(Text(sequence["words"]), sequence["detokenized"])
        << sequence["words"];
  }
}

TEST(MosesDetokenizer, OrdinaryWordsAreNotHeld) {
  MosesDetokenizer detokenizer;
  EXPECT_EQ(detokenizer.Add("It"), "It");
  EXPECT_EQ(detokenizer.Add("'s"), "'s");
  EXPECT_EQ(detokenizer.Add("well"), " well");
  EXPECT_EQ(detokenizer.Add("@-@"), "-");
  EXPECT_EQ(detokenizer.Add("known"), "known");
}

TEST(MosesDetokenizer, PunctuationAndQuotesComeWithTheNextWord) {
  MosesDetokenizer detokenizer;
  detokenizer.Add("He");
  EXPECT_EQ(detokenizer.Add(","), "");
  EXPECT_EQ(detokenizer.Add("\""), ",");
  EXPECT_EQ(detokenizer.Add("she"), " \"she");
  EXPECT_EQ(detokenizer.Add("\""), "");
  EXPECT_EQ(detokenizer.Flush(), "\"");
  EXPECT_EQ(detokenizer.Add("said"), " said");
}

TEST(MosesDetokenizer, NumbersAreJoinedOnceTheNextWordIsThere) {
  MosesDetokenizer detokenizer;
  EXPECT_EQ(detokenizer.Add("3"), "3");
  EXPECT_EQ(detokenizer.Add("@,@"), "");
  EXPECT_EQ(detokenizer.Add("000"), ",000");
  EXPECT_EQ(detokenizer.Add("@.@"), "");
  EXPECT_EQ(detokenizer.Flush(), " @.@");
}

TEST(MosesDetokenizer, AJoinAfterAFlushGoesOnWhereTheTextEnded) {
  MosesDetokenizer detokenizer;
  detokenizer.Add("well");
  EXPECT_EQ(detokenizer.Flush(), "");
  EXPECT_EQ(detokenizer.Add("@-@"), "-");
  EXPECT_EQ(detokenizer.Add("known"), "known");
  EXPECT_EQ(detokenizer.Add("fact"), " fact");
}

TEST(MosesDetokenizer, ACopyGoesOnAlone) {
  MosesDetokenizer detokenizer;
  detokenizer.Add("a");
  detokenizer.Add("\"");
  MosesDetokenizer copy = detokenizer;
  EXPECT_EQ(copy.Add("b"), " \"b");
  EXPECT_EQ(detokenizer.Flush(), " \"");
}

std::string Replaced(std::string text, const std::string& from,
                     const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

TEST(StreamReplacer, EqualsReplacingTheWholeOnRandomCuts) {
  std::mt19937 random(8);
  for (int i = 0; i < 5000; ++i) {
    std::string text(random() % 40, ' ');
    for (char& c : text) c = " @,x"[random() % 4];
    StreamReplacer replacer(" @,@ ", ",");
    std::string streamed;
    for (size_t at = 0; at < text.size();) {
      const size_t size = std::min<size_t>(1 + random() % 4, text.size() - at);
      streamed += replacer.Push(text.substr(at, size));
      at += size;
    }
    streamed += replacer.Flush();
    ASSERT_EQ(streamed, Replaced(text, " @,@ ", ",")) << text;
  }
}

}  // namespace
}  // namespace txl
