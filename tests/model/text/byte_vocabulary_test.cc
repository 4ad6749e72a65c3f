#include "model/text/byte_vocabulary.h"

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/text/utf8.h"
#include "tests/model/text/utf8_oracle.h"

namespace txl {
namespace {

using ::testing::ElementsAre;

TEST(ByteVocabulary, HasOneIdPerByteValue) {
  const ByteVocabulary vocabulary;
  EXPECT_EQ(vocabulary.size(), 256);
  EXPECT_EQ(vocabulary.kind(), "bytes");
  for (int id = 0; id < 256; ++id) {
    EXPECT_EQ(vocabulary.TokenBytes(id), std::string(1, static_cast<char>(id)));
  }
}

TEST(ByteVocabulary, EncodesTextAsItsBytes) {
  const ByteVocabulary vocabulary;
  EXPECT_THAT(*vocabulary.Encode("a\n\u00E9"),
              ElementsAre(0x61, 0x0A, 0xC3, 0xA9));
  EXPECT_TRUE(vocabulary.Encode("")->empty());
}

TEST(ByteVocabulary, DecodesWhatItEncoded) {
  const ByteVocabulary vocabulary;
  const std::string text = "d\u00E9j\u00E0 vu\n\U0001F600\tend";
  EXPECT_EQ(*vocabulary.Decode(*vocabulary.Encode(text)), text);
}

TEST(ByteVocabulary, StreamsRandomBytesAsValidTextThatEqualsTheWhole) {
  const ByteVocabulary vocabulary;
  std::mt19937 random(3);
  for (int i = 0; i < 5000; ++i) {
    const std::string bytes = RandomHardBytes(random, 20);
    const auto detokenizer = vocabulary.NewDetokenizer();
    std::string streamed;
    const std::vector<int32_t> ids = *vocabulary.Encode(bytes);
    for (const int32_t id : ids) {
      const std::string piece = detokenizer->Add(id);
      ASSERT_TRUE(IsValidUtf8(piece));
      streamed += piece;
    }
    streamed += detokenizer->Flush();
    ASSERT_EQ(streamed, OracleReplaceInvalid(bytes));
    ASSERT_EQ(*vocabulary.Decode(ids), streamed);
  }
}

TEST(ByteVocabulary, HoldsAnIncompleteCharacterUntilItsLastByte) {
  const auto detokenizer = ByteVocabulary().NewDetokenizer();
  EXPECT_EQ(detokenizer->Add(0xF0), "");
  EXPECT_EQ(detokenizer->Add(0x9F), "");
  EXPECT_EQ(detokenizer->Add(0x98), "");
  EXPECT_EQ(detokenizer->Add(0x80), "\U0001F600");
}

TEST(ByteVocabulary, AFlushStartsANewCharacter) {
  const auto detokenizer = ByteVocabulary().NewDetokenizer();
  EXPECT_EQ(detokenizer->Add(0xC3), "");
  EXPECT_EQ(detokenizer->Flush(), "\uFFFD");
  EXPECT_EQ(detokenizer->Flush(), "");
  EXPECT_EQ(detokenizer->Add(0xA9), "\uFFFD");
}

TEST(ByteVocabulary, ACloneContinuesOnItsOwn) {
  const auto detokenizer = ByteVocabulary().NewDetokenizer();
  detokenizer->Add(0xC3);
  const auto clone = detokenizer->Clone();
  EXPECT_EQ(clone->Add(0xA9), "\u00E9");
  EXPECT_EQ(detokenizer->Add('x'), "\uFFFDx");
}

}  // namespace
}  // namespace txl
