#include "model/text/stop_text_matcher.h"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

struct Match {
  size_t end = 0;  // in the text
  std::string stop_text;
};

// The earliest end, of equal ends the longest: by trying every end.
std::optional<Match> FirstMatch(const std::string& text,
                                const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::optional<Match> match;
    for (const std::string& stop : stops) {
      if (stop.size() <= end &&
          text.compare(end - stop.size(), stop.size(), stop) == 0 &&
          (!match || stop.size() > match->stop_text.size())) {
        match = Match{end, stop};
      }
    }
    if (match) return match;
  }
  return std::nullopt;
}

// Length of the longest end of `text` that is a proper prefix of a stop text.
size_t HeldSize(const std::string& text,
                const std::vector<std::string>& stops) {
  for (size_t size = text.size(); size > 0; --size) {
    for (const std::string& stop : stops) {
      if (stop.size() > size &&
          text.compare(text.size() - size, size, stop, 0, size) == 0) {
        return size;
      }
    }
  }
  return 0;
}

std::string RandomText(std::mt19937& random, size_t min_size, size_t max_size) {
  std::string text(min_size + random() % (max_size - min_size + 1), '\0');
  for (char& c : text) c = static_cast<char>('a' + random() % 2);
  return text;
}

TEST(StopTextMatcher, LetsEverythingThroughWithoutStopTexts) {
  StopTextMatcher matcher({}, false);
  const StopTextMatcher::Output output = matcher.Push("any text");
  EXPECT_EQ(output.text, "any text");
  EXPECT_FALSE(output.matched.has_value());
  EXPECT_EQ(matcher.Flush(), "");
}

TEST(StopTextMatcher, EndsTheTextWhereTheStopTextStarts) {
  StopTextMatcher matcher({"STOP"}, false);
  const StopTextMatcher::Output output = matcher.Push("go STOP now");
  EXPECT_EQ(output.text, "go ");
  EXPECT_EQ(output.matched, "STOP");
}

TEST(StopTextMatcher, EndsTheTextAfterTheStopTextWhenItIsIncluded) {
  StopTextMatcher matcher({"STOP"}, true);
  const StopTextMatcher::Output output = matcher.Push("go STOP now");
  EXPECT_EQ(output.text, "go STOP");
  EXPECT_EQ(output.matched, "STOP");
}

TEST(StopTextMatcher, FindsAStopTextAcrossPushesAndHoldsItsStart) {
  StopTextMatcher matcher({"\n\n"}, false);
  EXPECT_EQ(matcher.Push("end\n").text, "end");
  EXPECT_EQ(matcher.Push("").text, "");
  const StopTextMatcher::Output output = matcher.Push("\nmore");
  EXPECT_EQ(output.text, "");
  EXPECT_EQ(output.matched, "\n\n");
}

TEST(StopTextMatcher, GivesHeldTextBackWhenItTurnsOutToBeNoStopText) {
  StopTextMatcher matcher({"abc"}, false);
  EXPECT_EQ(matcher.Push("xab").text, "x");
  EXPECT_EQ(matcher.Push("aby").text, "ababy");
  EXPECT_EQ(matcher.Push("ab").text, "");
  EXPECT_EQ(matcher.Flush(), "ab");
}

TEST(StopTextMatcher, AFlushForgetsTheStartOfAStopText) {
  StopTextMatcher matcher({"ab"}, false);
  matcher.Push("a");
  EXPECT_EQ(matcher.Flush(), "a");
  const StopTextMatcher::Output output = matcher.Push("b");
  EXPECT_EQ(output.text, "b");
  EXPECT_FALSE(output.matched.has_value());
}

TEST(StopTextMatcher, OfEqualEndsTheLongestStopTextWins) {
  StopTextMatcher matcher({"bc", "abc", "c"}, false);
  const StopTextMatcher::Output output = matcher.Push("xabc");
  EXPECT_EQ(output.matched, "abc");
  EXPECT_EQ(output.text, "x");
}

TEST(StopTextMatcher, TheEarliestEndWinsOverAnEarlierStart) {
  StopTextMatcher matcher({"abcd", "bc"}, false);
  const StopTextMatcher::Output output = matcher.Push("abcd");
  EXPECT_EQ(output.matched, "bc");
  EXPECT_EQ(output.text, "a");
}

TEST(StopTextMatcher, AnEmptyStopTextMatchesNothing) {
  StopTextMatcher matcher({"", "b"}, false);
  EXPECT_EQ(matcher.Push("aa").text, "aa");
  EXPECT_EQ(matcher.Push("b").matched, "b");
}

TEST(StopTextMatcher, NeverCutsACharacter) {
  // The stop text shares its first byte with the character before it.
  StopTextMatcher matcher({"\u20AC\u00E9"}, false);
  std::string sent;
  for (const char* piece : {"\u20AA", "\u20AC", "\u20AC", "\u00E8"}) {
    const StopTextMatcher::Output output = matcher.Push(piece);
    EXPECT_TRUE(IsValidUtf8(output.text));
    sent += output.text;
  }
  EXPECT_EQ(sent, "\u20AA\u20AC\u20AC\u00E8");
  matcher.Push("\u20AC");
  EXPECT_EQ(matcher.Push("\u00E9").matched, "\u20AC\u00E9");
}

TEST(StopTextMatcher, TheLongestStopTextsWorkAtEveryCut) {
  const std::string stop = absl::StrCat(std::string(255, 'a'), "b");
  const std::string text = absl::StrCat("x", std::string(300, 'a'), "b");
  for (size_t cut = 0; cut <= text.size(); cut += 7) {
    StopTextMatcher matcher({stop}, false);
    StopTextMatcher::Output output = matcher.Push(text.substr(0, cut));
    std::string sent = output.text;
    output = matcher.Push(text.substr(cut));
    sent += output.text;
    ASSERT_EQ(output.matched, stop);
    ASSERT_EQ(sent, "x" + std::string(45, 'a'));
  }
}

struct RandomCase {
  std::vector<std::string> stops;
  std::string text;
  bool include = false;
};

RandomCase MakeRandomCase(std::mt19937& random) {
  RandomCase random_case;
  random_case.stops.resize(1 + random() % 4);
  for (std::string& stop : random_case.stops) stop = RandomText(random, 1, 7);
  random_case.text = RandomText(random, 0, 40);
  random_case.include = random() % 2 == 0;
  return random_case;
}

// Pushes the text in random pieces; checks every output against the oracles.
void CheckAgainstOracles(const RandomCase& c, std::mt19937& random) {
  StopTextMatcher matcher(c.stops, c.include);
  const std::optional<Match> expected = FirstMatch(c.text, c.stops);
  std::string sent;
  for (size_t at = 0; at < c.text.size();) {
    const size_t size = std::min<size_t>(1 + random() % 5, c.text.size() - at);
    const StopTextMatcher::Output output =
        matcher.Push(c.text.substr(at, size));
    at += size;
    sent += output.text;
    if (expected && expected->end <= at) {
      ASSERT_EQ(output.matched, expected->stop_text);
      const size_t end =
          expected->end - (c.include ? 0 : expected->stop_text.size());
      ASSERT_EQ(sent, c.text.substr(0, end));
      return;
    }
    ASSERT_FALSE(output.matched.has_value());
    const std::string so_far = c.text.substr(0, at);
    ASSERT_EQ(sent.size() + HeldSize(so_far, c.stops), at);
  }
  ASSERT_FALSE(expected.has_value());
  ASSERT_EQ(sent + matcher.Flush(), c.text);
}

TEST(StopTextMatcher, EqualsBruteForceOnRandomTextInRandomPieces) {
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    const RandomCase random_case = MakeRandomCase(random);
    CheckAgainstOracles(random_case, random);
    if (testing::Test::HasFatalFailure()) {
      FAIL() << testing::PrintToString(random_case.stops) << " in "
             << random_case.text;
    }
  }
}

}  // namespace
}  // namespace txl
