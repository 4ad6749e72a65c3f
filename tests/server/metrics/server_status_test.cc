#include "server/metrics/server_status.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace txl {
namespace {

// Fields 3 to 25 of proc(5), each its own number.
constexpr char kFields[] =
    "S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25";

TEST(ParseProcStat, TakesTheFieldsOfTheManualPage) {
  const auto stat = ParseProcStat(absl::StrCat("77 (txl-server) ", kFields));
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->cpu_ticks, 14 + 15);
  EXPECT_EQ(stat->threads, 20);
  EXPECT_EQ(stat->start_ticks, 22);
  EXPECT_EQ(stat->virtual_bytes, 23);
  EXPECT_EQ(stat->resident_pages, 24);
}

TEST(ParseProcStat, IsNotFooledByTheProgramsName) {
  const auto stat = ParseProcStat(absl::StrCat("77 (a) b 1 (c) ", kFields));
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->resident_pages, 24);
}

TEST(ParseProcStat, RefusesWhatIsNoSuchLine) {
  EXPECT_FALSE(ParseProcStat("").has_value());
  EXPECT_FALSE(ParseProcStat("77 (x) S 4 5 6").has_value());
  EXPECT_FALSE(ParseProcStat("77 x S 4 5").has_value());
  std::string words = kFields;
  words.replace(words.find("14"), 2, "no");
  EXPECT_FALSE(ParseProcStat("77 (x) " + words).has_value());
}

TEST(ParseBootTime, IsTheNumberBehindBtime) {
  EXPECT_EQ(ParseBootTime("cpu 1 2 3\nbtime 1700000000\nprocesses 5\n"),
            1700000000);
  EXPECT_FALSE(ParseBootTime("cpu 1 2 3\n").has_value());
  EXPECT_FALSE(ParseBootTime("btime soon\n").has_value());
}

TEST(ReadProcessStatus, KnowsThisProcess) {
  const ProcessStatus status = ReadProcessStatus();
  EXPECT_GE(status.cpu_seconds, 0);
  EXPECT_GE(status.threads, 1);
  EXPECT_GE(status.resident_bytes, 100'000);
  EXPECT_GE(status.virtual_bytes, status.resident_bytes);
  EXPECT_EQ(status.max_fds, sysconf(_SC_OPEN_MAX));
  // Started after 2020 and not in the future.
  EXPECT_GT(status.start_time_seconds, 1.577e9);
  EXPECT_LE(status.start_time_seconds, static_cast<double>(time(nullptr)) + 1);
}

TEST(ReadProcessStatus, CountsOpenFiles) {
  const int64_t before = ReadProcessStatus().open_fds;
  std::vector<int> opened;
  for (int i = 0; i < 5; ++i) opened.push_back(open("/dev/null", O_RDONLY));
  EXPECT_EQ(ReadProcessStatus().open_fds, before + 5);
  for (const int fd : opened) close(fd);
  EXPECT_EQ(ReadProcessStatus().open_fds, before);
}

}  // namespace

}  // namespace txl
