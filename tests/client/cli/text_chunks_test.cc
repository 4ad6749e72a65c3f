#include "client/cli/text_chunks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace txl::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SplitText, AShortTextIsOnePiece) {
  EXPECT_THAT(SplitText("one\ntwo", 7), ElementsAre("one\ntwo"));
  EXPECT_THAT(SplitText("", 7), IsEmpty());
}

TEST(SplitText, CutsAfterTheLastLineEndThatFits) {
  EXPECT_THAT(SplitText("aa\nbb\ncc dd", 7), ElementsAre("aa\nbb\n", "cc dd"));
  EXPECT_THAT(SplitText("aaa\nb", 4), ElementsAre("aaa\n", "b"));
}

TEST(SplitText, CutsALongLineBeforeASpace) {
  EXPECT_THAT(SplitText("one two three", 8), ElementsAre("one two", " three"));
  EXPECT_THAT(SplitText("abcd efg", 4), ElementsAre("abcd", " efg"));
}

TEST(SplitText, CutsALongWordAtACharactersBorder) {
  // e with acute is two bytes, the emoji four.
  EXPECT_THAT(SplitText("abc\xc3\xa9z", 4), ElementsAre("abc", "\xc3\xa9z"));
  EXPECT_THAT(SplitText("\xf0\x9f\x98\x80\xf0\x9f\x98\x80", 4),
              ElementsAre("\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"));
}

TEST(SplitText, PiecesFitAndTogetherAreTheText) {
  std::string text;
  for (int i = 0; i < 500; ++i) {
    text += std::string(i % 23, 'x') + (i % 3 == 0 ? "\n" : " \xc3\xa9");
  }
  for (size_t max_bytes : {4, 5, 16, 100, 1000}) {
    std::string joined;
    for (absl::string_view piece : SplitText(text, max_bytes)) {
      EXPECT_LE(piece.size(), max_bytes);
      EXPECT_FALSE(piece.empty());
      joined += std::string(piece);
    }
    EXPECT_EQ(joined, text);
  }
}

TEST(SplitText, DoesNotHangOnBytesThatAreNoUtf8) {
  const std::string text(100, '\x80');
  size_t bytes = 0;
  for (absl::string_view piece : SplitText(text, 8)) bytes += piece.size();
  EXPECT_EQ(bytes, text.size());
}

TEST(CountCharacters, CountsCodePoints) {
  EXPECT_EQ(CountCharacters(""), 0);
  EXPECT_EQ(CountCharacters("abc\n"), 4);
  EXPECT_EQ(CountCharacters("\xc3\xa9\xf0\x9f\x98\x80"), 2);
}

}  // namespace
}  // namespace txl::cli
