// Lines on their way into a pipe whose reader reads, stands still or dies.

#include "server/base/log_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace txl {
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
