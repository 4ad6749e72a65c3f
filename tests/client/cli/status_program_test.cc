// `txl status --watch` as a program, into a pipe and at a terminal.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tests/client/fake_service.h"
#include "tests/client/process.h"

namespace txl::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class StatusWatch : public ::testing::Test {
 protected:
  StatusWatch() {
    // At the n-th look: 10 n seconds, 100 n^2 tokens.
    server_->on_status = [this](v1::GetServerStatusResponse* status) {
      const int64_t n = ++looks_;
      status->mutable_uptime()->set_seconds(10 * n);
      status->set_tokens_delivered(100 * n * n);
      status->set_steps(20 * n);
    };
  }

  std::vector<std::string> Argv(std::vector<std::string> flags) const {
    std::vector<std::string> argv = {TXL_PROGRAM, "status"};
    argv.insert(argv.end(), flags.begin(), flags.end());
    argv.insert(argv.end(), {"--server", server_.address()});
    return argv;
  }

  std::atomic<int64_t> looks_{0};
  FakeServer server_;
};

TEST_F(StatusWatch, SaysALineEachPeriodUntilCtrlC) {
  Process watch(Argv({"--watch", "0.1"}));
  // Since the start, then since the line before: 100 (n^2 - (n-1)^2) / 10.
  for (const char* rate : {"10.0", "30.0", "50.0"}) {
    const std::string line = watch.ReadLine();
    EXPECT_THAT(line, StartsWith("ready, up "));
    EXPECT_THAT(line, HasSubstr("last 10.0 s: " + std::string(rate) +
                                " tokens/s, 2.0 steps/s"));
  }
  watch.Signal(SIGINT);
  watch.ReadRest();
  EXPECT_EQ(watch.Wait(), 130) << watch.Err();
}

TEST_F(StatusWatch, WithoutANumberItHasAPeriodOfItsOwn) {
  Process watch(Argv({"--watch"}));
  EXPECT_THAT(watch.ReadLine(), HasSubstr("10.0 tokens/s"));
  watch.Signal(SIGINT);
  EXPECT_EQ(watch.Wait(), 130) << watch.Err();
}

TEST_F(StatusWatch, RedrawsAtATerminal) {
  Process watch(Argv({"--watch", "0.1"}), Process::Terminal::kPseudo);
  for (const char* rate : {"10.0", "30.0"}) {
    const std::string screen = watch.ReadUntil("turns ended");
    EXPECT_THAT(screen, HasSubstr("\x1b[H\x1b[2Jstate        ready"));
    EXPECT_THAT(screen, HasSubstr("tokens/s     " + std::string(rate)));
  }
  watch.Signal(SIGINT);
  watch.ReadRest();
  EXPECT_EQ(watch.Wait(), 130);
}

TEST(StatusWatchEnd, IsTheServers) {
  auto server = std::make_unique<FakeServer>();
  Process watch(
      {TXL_PROGRAM, "status", "--watch", "0.1", "--server", server->address()});
  EXPECT_THAT(watch.ReadLine(), StartsWith("ready"));
  server.reset();
  watch.ReadRest();
  EXPECT_EQ(watch.Wait(), 1);
  EXPECT_THAT(watch.Err(), HasSubstr("UNAVAILABLE"));
}

TEST_F(StatusWatch, WrongPeriodsAndMixturesAreUsageErrors) {
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--watch", "0"},
                                             {"--watch=-1"},
                                             {"--watch", "soon"},
                                             {"--watch", "1", "--check"},
                                             {"--watch", "1", "--json"}}) {
    const Completed run = RunProgram(Argv(flags));
    EXPECT_EQ(run.exit_code, 2) << flags[0];
    EXPECT_THAT(run.err, HasSubstr("--watch"));
  }
  EXPECT_EQ(looks_, 0);
}

TEST_F(StatusWatch, HelpSaysWhatItDoesByItself) {
  EXPECT_THAT(RunProgram({TXL_PROGRAM, "status", "--help"}).out,
              HasSubstr("[default: off; without a number 2]"));
}

}  // namespace
}  // namespace txl::testing
