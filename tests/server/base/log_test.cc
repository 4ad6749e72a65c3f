#include "server/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "server/base/log_format.h"

namespace txl {
namespace {

using Json = nlohmann::json;

absl::Time SomeTime() {
  return absl::FromCivil(absl::CivilSecond(2026, 1, 31, 12, 0, 0),
                         absl::UTCTimeZone()) +
         absl::Microseconds(42);
}

Json Parse(const LogFields& fields) {
  return Json::parse(
      FormatLogLine(SomeTime(), LogSeverity::kInfo, "event", fields));
}

// Puts the level back, so that tests don't meet each other.
class LogTest : public ::testing::Test {
 protected:
  ~LogTest() override { SetLogLevel(LogSeverity::kInfo); }
};

TEST(FormatLogLineTest, IsOneJsonObjectInFixedOrder) {
  EXPECT_EQ(FormatLogLine(SomeTime(), LogSeverity::kWarning, "turn_failed",
                          {{"reason", "STEP_FAILED"}, {"rows", 3}}),
            "{\"time\":\"2026-01-31T12:00:00.000042Z\","
            "\"severity\":\"WARNING\",\"event\":\"turn_failed\","
            "\"fields\":{\"reason\":\"STEP_FAILED\",\"rows\":3}}");
}

TEST(FormatLogTextTest, IsALineForPeople) {
  const std::string line =
      FormatLogText(SomeTime(), LogSeverity::kWarning, "turn_failed",
                    {{"reason", "STEP_FAILED"},
                     {"rows", 3},
                     {"forced", true},
                     {"error", "not \"so\"\n"},
                     {"empty", ""}});
  EXPECT_THAT(line, ::testing::EndsWith(
                        " WARNING turn_failed reason=STEP_FAILED rows=3 "
                        "forced=true error=\"not \\\"so\\\"\\n\" empty=\"\""));
  EXPECT_THAT(line, ::testing::HasSubstr(":00:00.000 "));
}

TEST_F(LogTest, LinesHaveTheFormatThatWasSet) {
  const LogCapture capture;
  SetLogFormat(LogFormat::kText);
  Log(LogSeverity::kInfo, "ready", {{"slots", 4}});
  SetLogFormat(LogFormat::kJson);
  Log(LogSeverity::kInfo, "ready", {{"slots", 4}});
  EXPECT_THAT(capture.lines(),
              ::testing::ElementsAre(::testing::EndsWith("INFO ready slots=4"),
                                     ::testing::StartsWith("{")));
}

TEST(FormatLogLineTest, ValuesKeepTheirTypes) {
  const std::string text = "owned";
  const Json fields = Parse({{"flag", true},
                             {"small", -7},
                             {"large", std::numeric_limits<int64_t>::min()},
                             {"unsigned", std::numeric_limits<uint64_t>::max()},
                             {"real", 0.25},
                             {"single", 0.5f},
                             {"literal", "text"},
                             {"view", absl::string_view("seen")},
                             {"string", text}})["fields"];
  EXPECT_TRUE(fields["flag"].is_boolean());
  EXPECT_EQ(fields["flag"], true);
  EXPECT_EQ(fields["small"], -7);
  EXPECT_EQ(fields["large"], std::numeric_limits<int64_t>::min());
  EXPECT_EQ(fields["unsigned"], std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(fields["real"], 0.25);
  EXPECT_EQ(fields["single"], 0.5);
  EXPECT_EQ(fields["literal"], "text");
  EXPECT_EQ(fields["view"], "seen");
  EXPECT_EQ(fields["string"], "owned");
}

TEST(FormatLogLineTest, TextCannotForgeASecondLine) {
  const std::string line =
      FormatLogLine(SomeTime(), LogSeverity::kInfo, "event",
                    {{"error", "first\nsecond\r\"quoted\"\x1b[31m"}});
  EXPECT_THAT(line, ::testing::Not(::testing::HasSubstr("\n")));
  EXPECT_THAT(line, ::testing::Not(::testing::HasSubstr("\r")));
  EXPECT_THAT(line, ::testing::Not(::testing::HasSubstr("\x1b")));
  EXPECT_EQ(Json::parse(line)["fields"]["error"],
            "first\nsecond\r\"quoted\"\x1b[31m");
}

TEST(FormatLogLineTest, BytesThatAreNotUtf8BecomeReplacementCharacters) {
  EXPECT_EQ(Parse({{"error",
                    "a\xff"
                    "b"}})["fields"]["error"],
            "a\xEF\xBF\xBD"
            "b");
}

TEST(FormatLogLineTest, NumbersThatAreNotFiniteBecomeNull) {
  const Json fields = Parse({{"nan", std::numeric_limits<double>::quiet_NaN()},
                             {"inf", std::numeric_limits<float>::infinity()}});
  EXPECT_TRUE(fields["fields"]["nan"].is_null());
  EXPECT_TRUE(fields["fields"]["inf"].is_null());
}

TEST(FormatLogLineTest, NoFieldsAreAnEmptyObject) {
  EXPECT_EQ(Parse({})["fields"], Json::object());
}

TEST(FormatLogLineTest, AFieldCannotReplaceTheLinesOwnKeys) {
  const Json line = Parse({{"severity", "none"}});
  EXPECT_EQ(line["severity"], "INFO");
  EXPECT_EQ(line["fields"]["severity"], "none");
}

TEST(LogSeverityTest, EveryNameIsReadBackInAnyCase) {
  for (const LogSeverity severity :
       {LogSeverity::kDebug, LogSeverity::kInfo, LogSeverity::kWarning,
        LogSeverity::kError}) {
    const absl::StatusOr<LogSeverity> parsed =
        ParseLogSeverity(LogSeverityName(severity));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, severity);
  }
  EXPECT_EQ(*ParseLogSeverity("warning"), LogSeverity::kWarning);
  EXPECT_EQ(*ParseLogSeverity("Debug"), LogSeverity::kDebug);
}

TEST(LogSeverityTest, AnUnknownNameIsRefusedWithTheKnownOnes) {
  for (const char* name : {"", "verbose", "info ", "2"}) {
    const absl::StatusOr<LogSeverity> parsed = ParseLogSeverity(name);
    ASSERT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument)
        << name;
    EXPECT_THAT(std::string(parsed.status().message()),
                ::testing::HasSubstr("debug, info, warning, error"));
  }
}

TEST_F(LogTest, DropsWhatIsBelowTheLevel) {
  LogCapture capture;
  Log(LogSeverity::kDebug, "details");
  Log(LogSeverity::kInfo, "news");
  SetLogLevel(LogSeverity::kError);
  Log(LogSeverity::kWarning, "warning");
  Log(LogSeverity::kError, "error");
  SetLogLevel(LogSeverity::kDebug);
  Log(LogSeverity::kDebug, "more_details");
  std::vector<std::string> events;
  for (const std::string& line : capture.lines()) {
    events.push_back(Json::parse(line)["event"]);
  }
  EXPECT_THAT(events, ::testing::ElementsAre("news", "error", "more_details"));
}

TEST_F(LogTest, TheInnermostCaptureGetsTheLines) {
  LogCapture outer;
  {
    LogCapture inner;
    Log(LogSeverity::kInfo, "inside");
    EXPECT_EQ(inner.lines().size(), 1u);
    EXPECT_TRUE(outer.lines().empty());
  }
  Log(LogSeverity::kInfo, "outside");
  ASSERT_EQ(outer.lines().size(), 1u);
  EXPECT_EQ(Json::parse(outer.lines()[0])["event"], "outside");
}

TEST_F(LogTest, LinesOfManyThreadsAreAllThereAndInOrderPerThread) {
  constexpr int kThreads = 4;
  constexpr int kLines = 200;
  LogCapture capture;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < kLines; ++i) {
        Log(LogSeverity::kInfo, "line", {{"thread", t}, {"number", i}});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<int> next(kThreads, 0);
  for (const std::string& line : capture.lines()) {
    const Json fields = Json::parse(line)["fields"];
    EXPECT_EQ(fields["number"], next[fields["thread"].get<int>()]++);
  }
  EXPECT_THAT(next, ::testing::Each(kLines));
}

}  // namespace
}  // namespace txl
