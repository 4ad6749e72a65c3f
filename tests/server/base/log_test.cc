#include "server/base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

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

// Lines on their way into a pipe whose reader reads, stands still or dies.

namespace {

using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::StartsWith;

class LogWriterTest : public ::testing::Test {
 protected:
  LogWriterTest() { EXPECT_EQ(::pipe(ends_), 0); }
  ~LogWriterTest() override {
    CloseReader();
    ::close(ends_[1]);
  }

  LogWriterOptions Options(int64_t queue_bytes = 1000) const {
    LogWriterOptions options;
    options.fd = ends_[1];
    options.queue_bytes = queue_bytes;
    options.dropped_line = [](int64_t lines) {
      return absl::StrCat("dropped ", lines);
    };
    return options;
  }

  void CloseReader() {
    if (ends_[0] >= 0) ::close(ends_[0]);
    ends_[0] = -1;
  }

  // Until the pipe takes nothing more without being read.
  void FillPipe() {
    ::fcntl(ends_[1], F_SETFL, O_NONBLOCK);
    const std::string filler(4096, '.');
    while (::write(ends_[1], filler.data(), filler.size()) > 0) {
    }
    ::fcntl(ends_[1], F_SETFL, 0);
  }

  // Reads until `count` line ends came.
  std::vector<std::string> ReadLines(int count) {
    std::string text;
    char byte = 0;
    while (count > 0 && ::read(ends_[0], &byte, 1) == 1) {
      if (byte == '\n') --count;
      if (byte != '.') text += byte;
    }
    if (!text.empty()) text.pop_back();
    return absl::StrSplit(text, '\n');
  }

  int ends_[2] = {-1, -1};
};

constexpr absl::Duration kLong = absl::Seconds(60);

TEST_F(LogWriterTest, WritesLinesInOrder) {
  LogWriter writer(Options());
  writer.Add("first");
  writer.Add("");
  writer.Add("third");
  EXPECT_TRUE(writer.Flush(kLong));
  EXPECT_THAT(ReadLines(3), ElementsAre("first", "", "third"));
  EXPECT_EQ(writer.dropped(), 0);
}

TEST_F(LogWriterTest, WritesWhatWaitsBeforeItsEnd) {
  {
    LogWriter writer(Options());
    writer.Add("last");
  }
  EXPECT_THAT(ReadLines(1), ElementsAre("last"));
}

TEST_F(LogWriterTest, AReaderThatStandsStillHoldsUpNobody) {
  FillPipe();
  LogWriter writer(Options(/*queue_bytes=*/100));
  for (int i = 0; i < 100; ++i) writer.Add(std::string(10, 'a'));
  // Ten in the queue, and at most ten in the thread's hands.
  EXPECT_GE(writer.dropped(), 80);
  EXPECT_FALSE(writer.Flush(absl::Milliseconds(1)));
  CloseReader();
}

TEST_F(LogWriterTest, SaysHowManyWereDroppedWhenItFlowsAgain) {
  FillPipe();
  LogWriter writer(Options(/*queue_bytes=*/10));
  writer.Add("first");
  while (writer.dropped() < 3) writer.Add("123456789");
  const int64_t dropped = writer.dropped();
  std::vector<std::string> lines;
  do {
    lines.push_back(ReadLines(1).front());
  } while (lines.back() != absl::StrCat("dropped ", dropped));
  EXPECT_EQ(lines.front(), "first");
  EXPECT_TRUE(writer.Flush(kLong));
  writer.Add("next");
  for (std::string line; line != "next"; line = ReadLines(1).front()) {
    EXPECT_THAT(line, Not(StartsWith("dropped")));  // told once
  }
  EXPECT_EQ(writer.dropped(), dropped);
}

TEST_F(LogWriterTest, SaysOnceThatLinesBeginToBeLost) {
  FillPipe();
  std::vector<int> errors;
  LogWriterOptions options = Options(/*queue_bytes=*/10);
  options.dropped_line = nullptr;
  options.losing = [&errors](int error) { errors.push_back(error); };
  LogWriter writer(options);
  while (writer.dropped() < 3) writer.Add("123456789");
  EXPECT_THAT(errors, ElementsAre(0)) << "no room, no error of a write";
  CloseReader();
}

TEST_F(LogWriterTest, LinesGoWhereItIsSwitchedTo) {
  int other[2];
  ASSERT_EQ(::pipe(other), 0);
  LogWriterOptions options = Options();
  options.fd = ::dup(ends_[1]);
  options.closes_fd = true;
  {
    LogWriter writer(options);
    writer.Add("first");
    ASSERT_TRUE(writer.Flush(kLong));
    writer.SwitchTo(other[1]);
    writer.Add("second");
    ASSERT_TRUE(writer.Flush(kLong));
  }
  EXPECT_EQ(::fcntl(options.fd, F_GETFD), -1) << "the old one is closed";
  EXPECT_EQ(::fcntl(other[1], F_GETFD), -1) << "and the new one, at the end";
  EXPECT_THAT(ReadLines(1), ElementsAre("first"));
  char text[16] = {};
  EXPECT_EQ(::read(other[0], text, sizeof(text)), 7);
  EXPECT_STREQ(text, "second\n");
  ::close(other[0]);
}

TEST_F(LogWriterTest, ALineAboveTheQueueIsDropped) {
  LogWriter writer(Options(/*queue_bytes=*/10));
  writer.Add(std::string(11, 'a'));
  EXPECT_EQ(writer.dropped(), 1);
}

TEST_F(LogWriterTest, AReaderThatDiedCostsItsLinesAndNothingElse) {
  CloseReader();
  LogWriter writer(Options());
  writer.Add("lost");
  writer.Add("lost too");
  EXPECT_TRUE(writer.Flush(kLong));
  EXPECT_EQ(writer.dropped(), 2);
}

TEST_F(LogWriterTest, ADescriptorThatDoesNotBlockLosesNothing) {
  constexpr int kLines = 1000;
  ::fcntl(ends_[1], F_SETFL, O_NONBLOCK);
  LogWriter writer(Options(/*queue_bytes=*/1 << 20));
  for (int i = 0; i < kLines; ++i) {
    writer.Add(absl::StrCat(i, std::string(500, 'x')));
  }
  const std::vector<std::string> lines = ReadLines(kLines);
  ASSERT_EQ(lines.size(), kLines);
  for (int i = 0; i < kLines; ++i) {
    EXPECT_EQ(lines[i], absl::StrCat(i, std::string(500, 'x')));
  }
  EXPECT_EQ(writer.dropped(), 0);
}

TEST(LogWriterFileTest, ADescriptorThatIsNoneLosesLinesOnly) {
  LogWriterOptions options;
  options.fd = -1;
  LogWriter writer(options);
  writer.Add("nowhere");
  EXPECT_TRUE(writer.Flush(kLong));
  EXPECT_EQ(writer.dropped(), 1);
}

}  // namespace

}  // namespace txl
