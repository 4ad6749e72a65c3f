// What surrounds the process: its log's reader, signals, file descriptors.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"

namespace txl::testing {
namespace {

// A pipe in the file system, for a log that nobody reads.
class UnreadPipe {
 public:
  UnreadPipe()
      : path_(absl::StrCat(::testing::TempDir(), "/unread-", getpid())) {
    EXPECT_EQ(mkfifo(path_.c_str(), 0600), 0);
  }
  ~UnreadPipe() { std::filesystem::remove(path_); }

  // Runs a server with its log going there. It holds the end to read from
  // itself.
  std::vector<std::string> Wrapper() const {
    return {"/bin/sh", "-c", "exec 3<>\"$0\"; exec \"$@\" 2>&3", path_};
  }

 private:
  const std::string path_;
};

TEST(ServerProcessTest, ServesAndDrainsWhileNobodyReadsItsLog) {
  const UnreadPipe pipe;
  ServerProcess server(GoldenModel("kimi-char"), {"--slots", "2"},
                       pipe.Wrapper());
  // A line a call: many times what a pipe holds.
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(server.client().GetModel().ok()) << i;
  }
  EXPECT_TRUE(
      RunTurn(server.client(), Greedy("", std::vector<uint32_t>{1, 2}, 5))
          .status.ok());
  server.Terminate();
  EXPECT_EQ(server.Wait(), 0);
}

TEST(ServerProcessTest, IgnoresAHangUpWithALine) {
  ServerProcess server(GoldenModel("kimi-char"), {"--slots", "2"});
  server.Signal(SIGHUP);
  EXPECT_TRUE(WaitUntil(
      [&] { return server.Log().find("SIGHUP") != std::string::npos; }));
  EXPECT_TRUE(server.client().GetModel().ok());
  server.Terminate();
  EXPECT_EQ(server.Wait(), 0);
}

}  // namespace
}  // namespace txl::testing
