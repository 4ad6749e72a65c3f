#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <cstdlib>

#include "program/help.h"

namespace txl {
namespace {

class WantsColorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(openpty(&terminal_, &other_end_, nullptr, nullptr, nullptr), 0);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
  }
  void TearDown() override {
    close(terminal_);
    close(other_end_);
  }

  int terminal_ = -1;
  int other_end_ = -1;
};

TEST_F(WantsColorTest, OnATerminal) {
  EXPECT_TRUE(WantsColor(other_end_));
  const int file = open("/dev/null", O_WRONLY | O_CLOEXEC);
  EXPECT_FALSE(WantsColor(file));
  close(file);
}

TEST_F(WantsColorTest, NotWhereNoColorIsSetOrTheTerminalKnowsNone) {
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(WantsColor(other_end_));
  setenv("NO_COLOR", "", 1);  // empty is as if it were not there
  EXPECT_TRUE(WantsColor(other_end_));
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(WantsColor(other_end_));
  unsetenv("TERM");
  EXPECT_FALSE(WantsColor(other_end_));
}

TEST(EmphasizeTest, PutsCodesAroundTheTextOnlyInColor) {
  EXPECT_EQ(Emphasize("late", Emphasis::kWarning, true), "\x1b[33mlate\x1b[0m");
  EXPECT_EQ(Emphasize("late", Emphasis::kWarning, false), "late");
}

}  // namespace
}  // namespace txl
