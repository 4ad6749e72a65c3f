#include "gtest/gtest.h"
#include "server/scheduler/resting_turns.h"

namespace txl {
namespace {

SchedulerOptions Options() {
  SchedulerOptions options;
  options.park_events = 8;
  options.slow_reader_limit = absl::Seconds(30);
  options.least_rate = 0.1;
  options.rate_window = absl::Seconds(60);
  return options;
}

class ReaderWatchTest : public ::testing::Test {
 protected:
  // `seconds` after the start `read` events have been read in all.
  void Look(double seconds, int64_t read, int unsent) {
    watch_.Look(options_, read + unsent, unsent, absl::Seconds(seconds));
  }
  bool too_slow() const { return watch_.TooSlow(options_); }

  SchedulerOptions options_ = Options();
  ReaderWatch watch_;
};

TEST_F(ReaderWatchTest, AReaderLagsFromAFullStreamUntilHalfOfItIsRead) {
  Look(1, 0, 7);
  EXPECT_FALSE(watch_.lags());
  Look(2, 0, 8);
  ASSERT_TRUE(watch_.lags());
  EXPECT_EQ(watch_.since(), absl::Seconds(2));
  Look(3, 3, 5);
  ASSERT_TRUE(watch_.lags());
  EXPECT_EQ(watch_.since(), absl::Seconds(2));
  Look(4, 4, 4);
  EXPECT_FALSE(watch_.lags());
  EXPECT_FALSE(too_slow());
}

TEST_F(ReaderWatchTest, AStreamThatFillsUpAgainLagsAnew) {
  Look(1, 0, 8);
  Look(2, 8, 0);
  Look(9, 8, 8);
  EXPECT_EQ(watch_.since(), absl::Seconds(9));
  EXPECT_EQ(watch_.NextLimit(options_), absl::Seconds(9 + 30));
}

TEST_F(ReaderWatchTest, AReaderThatReadsNothingIsTooSlowAfterTheLimit) {
  Look(10, 0, 8);
  EXPECT_EQ(watch_.NextLimit(options_), absl::Seconds(40));
  Look(39.9, 0, 8);
  EXPECT_FALSE(too_slow());
  Look(40, 0, 8);
  EXPECT_TRUE(too_slow());
}

// As one read every 29 seconds used to.
TEST_F(ReaderWatchTest, OneReadNowAndThenIsTooSlowAfterAWindow) {
  Look(0, 0, 8);
  Look(29, 1, 8);
  EXPECT_FALSE(too_slow());
  EXPECT_EQ(watch_.NextLimit(options_), absl::Seconds(29 + 30));
  Look(58, 2, 8);
  EXPECT_FALSE(too_slow());
  EXPECT_EQ(watch_.NextLimit(options_), absl::Seconds(60));
  Look(60, 2, 8);
  EXPECT_TRUE(too_slow());
}

TEST_F(ReaderWatchTest, AReaderAtTheLeastRateIsWaitedFor) {
  for (int i = 0; i <= 60; ++i) {
    Look(i * 10, i, 8);  // 0.1 events per second
    EXPECT_FALSE(too_slow()) << i;
  }
}

TEST_F(ReaderWatchTest, EachWindowCountsByItself) {
  Look(0, 0, 8);
  Look(40, 50, 8);
  Look(60, 50, 8);
  EXPECT_FALSE(too_slow());
  Look(65, 53, 8);
  Look(92, 55, 8);
  Look(120, 55, 8);  // 5 of 6 in this window
  EXPECT_TRUE(too_slow());
}

TEST_F(ReaderWatchTest, WithoutALeastRateAnyReadWillDo) {
  options_.least_rate = 0;
  Look(0, 0, 8);
  for (int i = 1; i < 20; ++i) {
    Look(29 * i, i, 8);
    EXPECT_FALSE(too_slow());
  }
}

TEST_F(ReaderWatchTest, AReaderThatKeepsUpHasNoLimit) {
  EXPECT_EQ(watch_.NextLimit(options_), absl::InfiniteDuration());
  for (int i = 0; i < 100; ++i) {
    Look(60 * i, 0, 7);
    EXPECT_FALSE(too_slow());
  }
}

TEST_F(ReaderWatchTest, TheSmallestStreamHasCaughtUpWhenItIsEmpty) {
  options_.park_events = 1;
  Look(0, 0, 1);
  EXPECT_TRUE(watch_.lags());
  Look(1, 1, 0);
  EXPECT_FALSE(watch_.lags());
}

}  // namespace
}  // namespace txl
