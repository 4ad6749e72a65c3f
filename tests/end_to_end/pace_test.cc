#include "tests/end_to_end/pace.h"

#include <gtest/gtest.h>

namespace txl::testing {
namespace {

TokenCount At(double seconds, int64_t tokens) {
  return {absl::UnixEpoch() + absl::Seconds(seconds), tokens};
}

TEST(TokensPerSecond, AreThoseBetweenTwoReadings) {
  EXPECT_DOUBLE_EQ(TokensPerSecond(At(10, 100), At(12.5, 600)), 200);
  EXPECT_DOUBLE_EQ(TokensPerSecond(At(10, 100), At(11, 100)), 0);
}

TEST(TokensPerSecond, AreNoneInNoTime) {
  EXPECT_EQ(TokensPerSecond(At(10, 100), At(10, 200)), 0);
}

TEST(Pace, HoldsUntilFivePercentAreLost) {
  EXPECT_TRUE((Pace{100, 200}).Holds());
  EXPECT_TRUE((Pace{100, 95}).Holds());
  EXPECT_FALSE((Pace{100, 94.9}).Holds());
  EXPECT_FALSE((Pace{100, 0}).Holds());
}

TEST(TellsItsPace, OnlyWithATenthOfTwelveSeconds) {
  EXPECT_FALSE(TellsItsPace(absl::Seconds(6)));
  EXPECT_FALSE(TellsItsPace(absl::Seconds(119)));
  EXPECT_TRUE(TellsItsPace(absl::Seconds(120)));
}

}  // namespace
}  // namespace txl::testing
