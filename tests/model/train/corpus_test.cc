#include "model/train/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace txl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CorpusTest, CharactersAreNumberedInCodePointOrder) {
  const auto corpus = MakeCorpus("bä\na€b", CorpusVocabulary::kCharacters, 0);
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_THAT(corpus->symbols, ElementsAre("\n", "a", "b", "ä", "€"));
  EXPECT_THAT(corpus->train, ElementsAre(2, 3, 0, 1, 4, 2));
  EXPECT_EQ(corpus->vocab_size(), 5);
  EXPECT_TRUE(corpus->held_out.empty());
}

TEST(CorpusTest, BytesAreTheirOwnIds) {
  const auto corpus = MakeCorpus("a\xff", CorpusVocabulary::kBytes, 0);
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_THAT(corpus->train, ElementsAre(97, 255));
  EXPECT_EQ(corpus->vocab_size(), 256);
}

TEST(CorpusTest, TheEndOfTheTextIsHeldOut) {
  const auto corpus = MakeCorpus("0123456789", CorpusVocabulary::kBytes, 0.2);
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_EQ(corpus->train.size(), 8u);
  EXPECT_THAT(corpus->held_out, ElementsAre('8', '9'));
}

TEST(CorpusTest, HeldOutSymbolsAreInTheVocabularyToo) {
  const auto corpus =
      MakeCorpus("aaaaaaaaaz", CorpusVocabulary::kCharacters, 0.1);
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_THAT(corpus->held_out, ElementsAre(1));
}

TEST(CorpusTest, InvalidUtf8IsNamedByItsByte) {
  const auto corpus = MakeCorpus("ab\xff", CorpusVocabulary::kCharacters, 0);
  EXPECT_EQ(corpus.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(corpus.status().message(), HasSubstr("byte 2"));
}

TEST(CorpusTest, EmptyTextsAndImpossibleSharesAreRefused) {
  EXPECT_FALSE(MakeCorpus("", CorpusVocabulary::kBytes, 0).ok());
  EXPECT_FALSE(MakeCorpus("a", CorpusVocabulary::kBytes, 1).ok());
  EXPECT_FALSE(MakeCorpus("a", CorpusVocabulary::kBytes, -0.1).ok());
}

TEST(CorpusTest, AMissingFileIsNamed) {
  const auto text = ReadTextFile("/no/such/file");
  EXPECT_EQ(text.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(text.status().message(), HasSubstr("/no/such/file"));
}

}  // namespace
}  // namespace txl
