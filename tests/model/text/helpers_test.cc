// What the vocabularies are built of: patterns, prefixes, the wire format.

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "model/text/pattern.h"
#include "model/text/sentencepiece_cutter.h"
#include "model/text/sentencepiece_model.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

TEST(Pattern, ReplacesEveryMatchOnce) {
  EXPECT_EQ(Pattern("(a)(b)").Replace("abab ab", "$2-$1"), "b-ab-a b-a");
  EXPECT_EQ(Pattern("x").Replace("", "y"), "");
  EXPECT_EQ(Pattern("a").Replace("aaa", "aa"), "aaaaaa");
}

TEST(Pattern, ALongResultFits) {
  const std::string text(1000, 'a');
  EXPECT_EQ(Pattern("a").Replace(text, "bcd").size(), 3000u);
}

TEST(Pattern, NothingIsReplacedBetweenCharactersOnly) {
  EXPECT_EQ(Pattern("x*").Replace("a\u00E9b", "-"), "-a-\u00E9-b-");
  EXPECT_EQ(Pattern("x*").Replace("xa", "[$0]"), "[x][]a[]");
}

TEST(Pattern, SeesWhatIsBeforeAMatchThatWasReplaced) {
  EXPECT_EQ(Pattern("(?<=a)a").Replace("aaa", "b"), "abb");
  EXPECT_EQ(Pattern("a$").Replace("a\na", "$0$0"), "a\naa");
}

TEST(Pattern, SeesCharactersNotBytes) {
  EXPECT_TRUE(Pattern("^.$").Matches("\u4E2D"));
  EXPECT_TRUE(Pattern("^\\p{Lu}$").Matches("\u00C9"));
  EXPECT_EQ(Pattern("[\u00E9]").Replace("\u00E9\u00E8", "e"), "e\u00E8");
}

TEST(PieceIndex, FindsEveryEntryThatTextStartsWith) {
  std::mt19937 random(6);
  std::map<std::string, int32_t> entries;
  for (int i = 0; i < 200; ++i) {
    std::string text(1 + random() % 5, ' ');
    for (char& c : text) c = "ab\xC3\xFF"[random() % 4];
    entries.emplace(text, i);
  }
  const PieceIndex index({entries.begin(), entries.end()});
  for (int i = 0; i < 1000; ++i) {
    std::string text(random() % 8, ' ');
    for (char& c : text) c = "ab\xC3\xFF"[random() % 4];
    std::vector<std::pair<size_t, int32_t>> expected;
    for (size_t size = 1; size <= text.size(); ++size) {
      const auto found = entries.find(text.substr(0, size));
      if (found != entries.end()) expected.emplace_back(size, found->second);
    }
    std::vector<std::pair<size_t, int32_t>> visited;
    index.VisitPrefixes(
        text, [&](size_t size, int32_t id) { visited.emplace_back(size, id); });
    ASSERT_EQ(visited, expected);
    ASSERT_EQ(index.LongestPrefix(text),
              expected.empty() ? 0 : expected.back().first);
  }
}

TEST(PieceIndex, KnowsItsLongestEntry) {
  EXPECT_EQ(PieceIndex({{"a", 0}, {"abc", 1}, {"b", 2}}).longest(), 3u);
  EXPECT_EQ(PieceIndex({}).longest(), 0u);
  EXPECT_EQ(PieceIndex({}).LongestPrefix("a"), 0u);
  EXPECT_EQ(PieceIndex({{"a", 0}}).LongestPrefix(""), 0u);
}

TEST(WireReader, ReadsFieldsOfEveryKind) {
  // 1: varint 300; 2: bytes "hi"; 3: float 1.5; 4: 64 bits.
  const std::string message(
      "\x08\xAC\x02\x12\x02hi\x1D\x00\x00\xC0\x3F"
      "\x21\x01\x00\x00\x00\x00\x00\x00\x00",
      21);
  WireReader in(message);
  ASSERT_TRUE(in.Next());
  EXPECT_TRUE(in.is_varint());
  EXPECT_EQ(in.number(), 300u);
  ASSERT_TRUE(in.Next());
  EXPECT_TRUE(in.is_bytes());
  EXPECT_EQ(in.bytes(), "hi");
  ASSERT_TRUE(in.Next());
  EXPECT_TRUE(in.is_float());
  EXPECT_EQ(in.AsFloat(), 1.5f);
  ASSERT_TRUE(in.Next());
  EXPECT_EQ(in.field(), 4u);
  EXPECT_EQ(in.number(), 1u);
  EXPECT_FALSE(in.Next());
  EXPECT_TRUE(in.ok());
}

TEST(WireReader, StopsAtWhatIsNoField) {
  for (const std::string& message :
       {std::string("\x08", 1), std::string("\x12\x05hi", 4),
        std::string("\x1D\x00", 2), std::string("\x0B", 1),
        std::string("\x00\x01", 2), std::string(11, '\xFF'),
        std::string("\x12\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", 10)}) {
    WireReader in(message);
    EXPECT_FALSE(in.Next());
    EXPECT_FALSE(in.ok());
  }
}

TEST(StripWhitespace, StripsWhatPythonStrips) {
  EXPECT_EQ(StripWhitespace(" \t\u3000a \u00A0b\x1C\n"), "a \u00A0b");
  EXPECT_EQ(StripWhitespace(" \n"), "");
  EXPECT_EQ(StripWhitespace(""), "");
}

TEST(TakeLine, EndsAtEveryKindOfLineBreak) {
  absl::string_view text = "a\nb\r\n\rc";
  std::vector<std::string> lines;
  while (!text.empty()) lines.emplace_back(TakeLine(text));
  EXPECT_EQ(lines, (std::vector<std::string>{"a", "b", "", "c"}));
}

}  // namespace
}  // namespace txl
