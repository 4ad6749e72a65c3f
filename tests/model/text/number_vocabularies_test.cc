// Ids that are numbers in text: decimal bytes and digits.

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/text/byte_vocabulary.h"
#include "model/text/digit_vocabulary.h"
#include "model/text/utf8.h"
#include "tests/model/text/utf8_oracle.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DecimalByteVocabulary, AnIdStandsForItsByte) {
  const DecimalByteVocabulary vocabulary({' ', 'e', 0xC3, 0xA9});
  EXPECT_EQ(vocabulary.size(), 4);
  EXPECT_EQ(vocabulary.kind(), "decimal_bytes");
  EXPECT_THAT(*vocabulary.Encode("e \u00E9"), ElementsAre(1, 0, 2, 3));
  EXPECT_EQ(*vocabulary.Decode({1, 0, 2, 3}), "e \u00E9");
  EXPECT_EQ(vocabulary.TokenBytes(2), "\xC3");
}

TEST(DecimalByteVocabulary, LineBreaksWithoutASymbolAreDropped) {
  EXPECT_THAT(*DecimalByteVocabulary({'a'}).Encode("\na\n\na"),
              ElementsAre(0, 0));
  EXPECT_THAT(*DecimalByteVocabulary({'a', '\n'}).Encode("\na"),
              ElementsAre(1, 0));
}

TEST(DecimalByteVocabulary, AnotherByteWithoutASymbolIsNamed) {
  const auto ids = DecimalByteVocabulary({'a'}).Encode("aa\rb");
  EXPECT_EQ(ids.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(ids.status().message()),
              HasSubstr("byte 13 at offset 2"));
}

TEST(DecimalByteVocabulary, StreamsValidTextWhateverTheBytes) {
  std::vector<unsigned char> bytes;
  for (int byte = 255; byte >= 0; --byte) {
    bytes.push_back(static_cast<unsigned char>(byte));
  }
  const DecimalByteVocabulary vocabulary(bytes);
  std::mt19937 random(4);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = RandomHardBytes(random, 16);
    const std::vector<int32_t> ids = *vocabulary.Encode(text);
    auto detokenizer = vocabulary.NewDetokenizer();
    std::string streamed;
    for (const int32_t id : ids) {
      if (random() % 4 == 0) detokenizer = detokenizer->Clone();
      const std::string piece = detokenizer->Add(id);
      ASSERT_TRUE(IsValidUtf8(piece));
      streamed += piece;
    }
    streamed += detokenizer->Flush();
    ASSERT_EQ(streamed, OracleReplaceInvalid(text));
  }
}

TEST(DigitVocabulary, EveryDigitIsAnIdAndSpacesAreSkipped) {
  const DigitVocabulary vocabulary(10);
  EXPECT_EQ(vocabulary.kind(), "digits");
  EXPECT_THAT(*vocabulary.Encode("3 1\t4\n"), ElementsAre(3, 1, 4));
  EXPECT_THAT(*vocabulary.Encode("314"), ElementsAre(3, 1, 4));
  EXPECT_EQ(vocabulary.TokenBytes(7), "7");
}

TEST(DigitVocabulary, DigitsAreJoinedBySpaces) {
  const DigitVocabulary vocabulary(10);
  EXPECT_EQ(*vocabulary.Decode({0, 9, 9}), "0 9 9");
  const auto detokenizer = vocabulary.NewDetokenizer();
  EXPECT_EQ(detokenizer->Add(3), "3");
  EXPECT_EQ(detokenizer->Flush(), "");
  EXPECT_EQ(detokenizer->Clone()->Add(1), " 1");
  EXPECT_EQ(detokenizer->Add(2), " 2");
}

TEST(DigitVocabulary, OtherCharactersAreShown) {
  const auto message = [](const std::string& text) {
    return std::string(DigitVocabulary(5).Encode(text).status().message());
  };
  EXPECT_THAT(message("1 x"), HasSubstr("\"x\" is not a digit from 0 to 4"));
  EXPECT_THAT(message("15"), HasSubstr("\"5\""));
  EXPECT_THAT(message("\u0663"), HasSubstr("not a digit"));
  EXPECT_THAT(message("\xFF"), HasSubstr("UTF-8"));
}

}  // namespace
}  // namespace txl
