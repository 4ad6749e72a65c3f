// The examples and rules of https://www.w3.org/TR/trace-context/, one by one.

#include "server/trace/trace_context.h"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace txl {
namespace {

using testing::MatchesRegex;

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kSpan[] = "00f067aa0ba902b7";

std::string Text(const std::string& version, const std::string& flags) {
  return absl::StrCat(version, "-", kTrace, "-", kSpan, "-", flags);
}

struct Row {
  const char* what;
  std::string text;
  bool valid;
  bool sampled = false;
};

std::vector<Row> Rows() {
  const std::string trace = kTrace;
  const std::string span = kSpan;
  return {
      {"the specification's example", Text("00", "01"), true, true},
      {"not sampled", Text("00", "00"), true},
      {"flags that are not known", Text("00", "fe"), true},
      {"all flags", Text("00", "ff"), true, true},
      {"random trace id, not sampled", Text("00", "02"), true},
      {"a later version", Text("01", "01"), true, true},
      {"a later version with more behind it", Text("cc", "01-what-not"), true,
       true},
      {"a later version with nothing behind a dash", Text("cc", "00-"), true},
      {"a later version whose flags go on", Text("cc", "01.x"), false},
      {"the version that is none", Text("ff", "01"), false},
      {"version 00 with more behind it", Text("00", "01-what"), false},
      {"version 00 with a dash behind it", Text("00", "01-"), false},
      {"nothing", "", false},
      {"a trace id of zeros", "00-" + std::string(32, '0') + "-" + span + "-01",
       false},
      {"a span id of zeros", "00-" + trace + "-" + std::string(16, '0') + "-01",
       false},
      {"capital letters", "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + span + "-01",
       false},
      {"capital letters of the span", "00-" + trace + "-00F067AA0BA902B7-01",
       false},
      {"capital letters of the version", Text("0A", "01"), false},
      {"capital letters of the flags", Text("00", "0A"), false},
      {"no hex in the version", Text("0x", "01"), false},
      {"no hex in the trace id", "00-" + trace.substr(1) + "g-" + span + "-01",
       false},
      {"no hex in the span id", "00-" + trace + "-" + span.substr(1) + " -01",
       false},
      {"no hex in the flags", Text("00", "0."), false},
      {"a trace id that is short", "00-" + trace.substr(1) + "-" + span + "-01",
       false},
      {"a trace id that is long", "00-0" + trace + "-" + span + "-01", false},
      {"one digit of flags", Text("00", "1"), false},
      {"underscores", "00_" + trace + "_" + span + "_01", false},
      {"a blank before it", " " + Text("00", "01"), false},
      {"a blank behind it", Text("00", "01 "), false},
      {"two in one", Text("00", "01") + "," + Text("00", "01"), false},
      {"a NUL inside", Text("00", std::string("0\0", 2)), false}};
}

TEST(ParseTraceparent, TakesWhatTheSpecificationAllowsAndNothingElse) {
  for (const Row& row : Rows()) {
    const auto parent = ParseTraceparent(row.text);
    ASSERT_EQ(parent.has_value(), row.valid) << row.what;
    if (!row.valid) continue;
    EXPECT_EQ(parent->trace_id, kTrace) << row.what;
    EXPECT_EQ(parent->span_id, kSpan) << row.what;
    EXPECT_EQ(parent->sampled, row.sampled) << row.what;
  }
}

TEST(ParseTraceparent, NoByteMayBeAnother) {
  const std::string text = Text("00", "01");
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = 'x';
    EXPECT_FALSE(ParseTraceparent(changed).has_value()) << i;
    EXPECT_FALSE(ParseTraceparent(text.substr(0, i)).has_value()) << i;
  }
}

TEST(StartTrace, GoesOnWithTheClientsTraceInASpanOfItsOwn) {
  const TraceContext context = StartTrace({Text("00", "01")}, 0);
  EXPECT_EQ(context.trace_id, kTrace);
  EXPECT_EQ(context.parent_id, kSpan);
  EXPECT_THAT(context.span_id, MatchesRegex("[0-9a-f]{16}"));
  EXPECT_NE(context.span_id, kSpan);
  EXPECT_TRUE(context.sampled);
  EXPECT_EQ(TraceparentOf(context),
            absl::StrCat("00-", kTrace, "-", context.span_id, "-01"));
}

TEST(StartTrace, MakesATraceWhereThereIsNoneOrMoreThanOne) {
  const std::string good = Text("00", "01");
  std::set<std::string> ids;
  for (const std::vector<std::string>& sent :
       {std::vector<std::string>{}, {"00-broken"}, {good, good}}) {
    const TraceContext context = StartTrace(sent, 0);
    EXPECT_THAT(context.trace_id, MatchesRegex("[0-9a-f]{32}"));
    EXPECT_NE(context.trace_id, kTrace);
    EXPECT_EQ(context.parent_id, "");
    EXPECT_FALSE(context.sampled);
    EXPECT_TRUE(ParseTraceparent(TraceparentOf(context)).has_value());
    ids.insert(context.trace_id);
  }
  EXPECT_EQ(ids.size(), 3u);
}

TEST(StartTrace, TheRateDecidesForWhoDoesNotSay) {
  EXPECT_FALSE(StartTrace({Text("00", "00")}, 0).sampled);
  EXPECT_TRUE(StartTrace({Text("00", "00")}, 1).sampled);
  EXPECT_TRUE(StartTrace({Text("00", "01")}, 0).sampled);
  EXPECT_TRUE(StartTrace({}, 1).sampled);
  EXPECT_FALSE(StartTrace({}, 0).sampled);
}

TEST(SpanBelow, IsASpanOfTheSameTrace) {
  const TraceContext above = StartTrace({Text("00", "01")}, 0);
  const TraceContext below = SpanBelow(above);
  EXPECT_EQ(below.trace_id, above.trace_id);
  EXPECT_EQ(below.parent_id, above.span_id);
  EXPECT_NE(below.span_id, above.span_id);
  EXPECT_EQ(below.sampled, above.sampled);
}

TEST(IsSampled, GoesByTheRightHalfOfTheId) {
  const std::string left(16, 'f');
  EXPECT_TRUE(IsSampled(left + "3fffffffff000000", 0.25));
  EXPECT_FALSE(IsSampled(left + "4000000000000000", 0.25));
  EXPECT_FALSE(IsSampled(left + "0000000000000000", 0));
  EXPECT_TRUE(IsSampled(left + "ffffffffffffffff", 1));
  int sampled = 0;
  for (int i = 0; i < 1000; ++i) {
    sampled += IsSampled(NewSpanId() + NewSpanId(), 0.5) ? 1 : 0;
  }
  // Beyond seven standard deviations of 1,000 fair coins.
  EXPECT_GT(sampled, 380);
  EXPECT_LT(sampled, 620);
}

}  // namespace
}  // namespace txl
