#include "model/text/utf8.h"

#include <random>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tests/model/text/utf8_oracle.h"

namespace txl {
namespace {

constexpr uint32_t kCodePoints = 0x110000;

bool IsSurrogate(uint32_t code_point) {
  return code_point >= 0xD800 && code_point <= 0xDFFF;
}

TEST(Utf8, EveryCodePointIsValidButSurrogates) {
  for (uint32_t c = 0; c < kCodePoints; ++c) {
    ASSERT_EQ(IsValidUtf8(EncodeCodePoint(c)), !IsSurrogate(c)) << c;
  }
}

TEST(Utf8, WhatTheUnicodeTableExcludesIsInvalid) {
  EXPECT_TRUE(IsValidUtf8(""));
  EXPECT_FALSE(IsValidUtf8("\xC0\x80"));          // overlong
  EXPECT_FALSE(IsValidUtf8("\xE0\x9F\xBF"));      // overlong
  EXPECT_FALSE(IsValidUtf8("\xF0\x8F\xBF\xBF"));  // overlong
  EXPECT_FALSE(IsValidUtf8("\xF4\x90\x80\x80"));  // above U+10FFFF
  EXPECT_FALSE(IsValidUtf8("a\xE2\x82"));         // cut off
  EXPECT_FALSE(IsValidUtf8("\x80"));
}

TEST(Utf8, RandomBytesAreJudgedAsByTheUnicodeTable) {
  std::mt19937 random(1);
  int n_valid = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string bytes = RandomHardBytes(random, 6);
    const bool valid = OracleReplaceInvalid(bytes) == bytes;
    ASSERT_EQ(IsValidUtf8(bytes), valid) << testing::PrintToString(bytes);
    n_valid += valid;
  }
  EXPECT_GT(n_valid, 1000);
}

// Tables 3-8 to 3-11 of the Unicode standard.
TEST(Utf8, MaximalSubpartsAreReplacedAsInTheUnicodeStandard) {
  EXPECT_EQ(ReplaceInvalidUtf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(ReplaceInvalidUtf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA\uFFFD\uFFFDB");
  EXPECT_EQ(ReplaceInvalidUtf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"),
            "\uFFFD\uFFFD\uFFFD\uFFFDA");
}

TEST(Utf8, ReplacingGivesValidTextAndLeavesValidTextAlone) {
  std::mt19937 random(2);
  for (int i = 0; i < 20000; ++i) {
    const std::string bytes = RandomHardBytes(random, 12);
    const std::string replaced = ReplaceInvalidUtf8(bytes);
    ASSERT_EQ(replaced, OracleReplaceInvalid(bytes))
        << testing::PrintToString(bytes);
    ASSERT_TRUE(IsValidUtf8(replaced));
    ASSERT_EQ(ReplaceInvalidUtf8(replaced), replaced);
  }
}

TEST(Utf8Assembler, SaysWhatIsCertainAsSoonAsItIs) {
  Utf8Assembler assembler;
  const auto add = [&](char byte) {
    std::string out;
    assembler.Add(byte, out);
    return out;
  };
  EXPECT_EQ(add('a'), "a");
  EXPECT_EQ(add('\xE2'), "");
  EXPECT_EQ(add('\x82'), "");
  EXPECT_EQ(add('\xAC'), "\u20AC");
  EXPECT_EQ(add('\xFF'), "\uFFFD");  // opens nothing
  EXPECT_EQ(add('\xE2'), "");
  EXPECT_EQ(add('b'), "\uFFFDb");  // breaks the character, is one itself
  EXPECT_EQ(add('\xE2'), "");
  EXPECT_EQ(add('\xC3'), "\uFFFD");  // breaks one, opens another
  EXPECT_EQ(add('\xA9'), "\u00E9");
  EXPECT_EQ(add('\xE0'), "");
  EXPECT_EQ(add('\x80'), "\uFFFD\uFFFD");  // breaks one, opens nothing
}

TEST(Utf8Assembler, FlushReplacesTheHeldBytesByOneCharacterAndForgetsThem) {
  Utf8Assembler assembler;
  std::string out;
  assembler.Flush(out);
  EXPECT_EQ(out, "");
  assembler.Add('\xF0', out);
  assembler.Add('\x9F', out);
  assembler.Flush(out);
  EXPECT_EQ(out, "\uFFFD");
  assembler.Add('x', out);
  EXPECT_EQ(out, "\uFFFDx");
}

TEST(Utf8, CodePointsAreCharactersAndNotBytes) {
  EXPECT_EQ(CodePoints(""), 0);
  EXPECT_EQ(CodePoints("abc"), 3);
  EXPECT_EQ(CodePoints("é語😀"), 3);
}

TEST(Utf8, FirstCharacterGivesCodePointAndLength) {
  for (const uint32_t c : {0x41u, 0xE9u, 0x20ACu, 0x1F600u, 0x10FFFFu}) {
    const Utf8Character first = FirstCharacter(EncodeCodePoint(c) + "tail");
    EXPECT_EQ(first.code_point, static_cast<int32_t>(c));
    EXPECT_EQ(first.length, EncodeCodePoint(c).size());
  }
}

// The characters for which Python 3's str.isspace() is true.
TEST(Utf8, WhitespaceIsPythonsWhitespace) {
  std::set<int32_t> expected = {0x20,   0x85,   0xA0,   0x1680, 0x2028,
                                0x2029, 0x202F, 0x205F, 0x3000};
  for (int32_t c = 0x09; c <= 0x0D; ++c) expected.insert(c);
  for (int32_t c = 0x1C; c <= 0x1F; ++c) expected.insert(c);
  for (int32_t c = 0x2000; c <= 0x200A; ++c) expected.insert(c);
  std::set<int32_t> actual;
  for (uint32_t c = 0; c < kCodePoints; ++c) {
    if (IsWhitespace(static_cast<int32_t>(c))) actual.insert(c);
  }
  EXPECT_EQ(actual, expected);
}

TEST(Utf8, LowerCaseWorksOnAnyScript) {
  EXPECT_EQ(LowerCase("Hello, WORLD 42"), "hello, world 42");
  EXPECT_EQ(LowerCase("\u00C9\u0394\u0416"), "\u00E9\u03B4\u0436");
  EXPECT_EQ(LowerCase("\u00DF\u4E2D\U0001F600"), "\u00DF\u4E2D\U0001F600");
  EXPECT_EQ(LowerCase(""), "");
}

TEST(Utf8, PrefixEndsAtACharacterBorder) {
  EXPECT_EQ(Utf8Prefix("abc", 5), "abc");
  EXPECT_EQ(Utf8Prefix("abc", 3), "abc");
  EXPECT_EQ(Utf8Prefix("abc", 2), "ab");
  EXPECT_EQ(Utf8Prefix("a\u20ACb", 3), "a");
  EXPECT_EQ(Utf8Prefix("a\u20ACb", 4), "a\u20AC");
  EXPECT_EQ(Utf8Prefix("\u20AC", 0), "");
}

}  // namespace
}  // namespace txl
