// The log's way to standard error, seen through a pipe in its place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "server/base/log.h"

namespace txl {
namespace {

// Runs `write` with standard error going into a pipe; returns what came.
template <typename F>
std::string CaptureStderr(F write) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  ::close(ends[1]);
  std::string text;
  std::thread reader([&] {
    char buffer[4096];
    ssize_t count = 0;
    while ((count = ::read(ends[0], buffer, sizeof buffer)) > 0) {
      text.append(buffer, static_cast<size_t>(count));
    }
  });
  write();
  FlushLog(absl::Seconds(60));
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  reader.join();
  ::close(ends[0]);
  return text;
}

TEST(LogStderrTest, WritesOneLineAnEvent) {
  const std::string text = CaptureStderr([] {
    Log(LogSeverity::kInfo, "first");
    Log(LogSeverity::kError, "second", {{"tokens", 5}});
  });
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  ASSERT_EQ(lines.size(), 3u) << text;
  EXPECT_EQ(nlohmann::json::parse(lines[0])["event"], "first");
  EXPECT_EQ(nlohmann::json::parse(lines[1])["fields"]["tokens"], 5);
  EXPECT_EQ(lines[2], "");
}

TEST(LogStderrTest, LongLinesOfManyThreadsNeverMix) {
  // Above the size up to which a pipe takes a write as a whole.
  const std::string filler(100'000, 'x');
  const std::string text = CaptureStderr([&] {
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 5; ++i) {
          Log(LogSeverity::kInfo, "long", {{"filler", filler}});
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  ASSERT_EQ(lines.size(), 21u);
  lines.pop_back();
  for (const std::string& line : lines) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    ASSERT_FALSE(json.is_discarded());
    EXPECT_EQ(json["fields"]["filler"], filler);
  }
}

// A program that logs into a pipe that nobody reads, then exits with `code`.
[[noreturn]] void LogUnreadAndExit(int code) {
  int ends[2];
  if (::pipe(ends) != 0) _exit(1);
  ::dup2(ends[1], STDERR_FILENO);
  while (LogLinesDropped() == 0) {
    Log(LogSeverity::kInfo, "unread", {{"filler", std::string(10'000, 'x')}});
  }
  FlushLog(absl::Milliseconds(1));
  std::exit(code);
}

TEST(LogStderrDeathTest, AnUnreadLogHoldsUpNeitherCallersNorTheExit) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(LogUnreadAndExit(7), ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace txl
