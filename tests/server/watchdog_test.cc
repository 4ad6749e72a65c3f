#include "server/watchdog.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/base/log.h"
#include "server/signals.h"

namespace txl {
namespace {

TEST(ShouldServe, OnlyWhenReadyAndMoving) {
  const absl::Duration limit = absl::Seconds(2);
  EXPECT_FALSE(ShouldServe(ServerPhase::kStarting, {}, limit));
  EXPECT_TRUE(ShouldServe(ServerPhase::kReady, {}, limit));
  EXPECT_TRUE(ShouldServe(ServerPhase::kReady, absl::Seconds(1.9), limit));
  EXPECT_FALSE(ShouldServe(ServerPhase::kReady, limit, limit));
  EXPECT_FALSE(ShouldServe(ServerPhase::kDraining, {}, limit));
}

TEST(HealthWatch, FollowsStallAndRecovery) {
  std::atomic<bool> stalled{false};
  std::atomic<int> answer{-1};
  HealthWatchOptions options;
  options.interval = absl::Milliseconds(1);
  options.phase = [] { return ServerPhase::kReady; };
  options.stall = [&] {
    return stalled ? absl::Seconds(3) : absl::ZeroDuration();
  };
  options.set_serving = [&](bool serving) { answer = serving ? 1 : 0; };
  const auto await = [&](int wanted) {
    const absl::Time end = absl::Now() + absl::Seconds(10);
    while (answer != wanted && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    return answer == wanted;
  };
  HealthWatch watch(options);
  EXPECT_TRUE(await(1));
  stalled = true;
  EXPECT_TRUE(await(0));
  stalled = false;
  EXPECT_TRUE(await(1));
}

TEST(HealthWatch, FollowsAStoreThatDoesNotAnswer) {
  std::atomic<bool> silent{true};
  absl::Notification served;
  HealthWatchOptions options;
  options.interval = absl::Milliseconds(1);
  options.phase = [] { return ServerPhase::kReady; };
  options.stall = [] { return absl::ZeroDuration(); };
  std::atomic<int> asked{0};
  options.store_silent = [&] {
    if (++asked == 3) silent = false;
    return silent.load();
  };
  options.set_serving = [&](bool serving) {
    EXPECT_TRUE(serving);
    EXPECT_FALSE(silent);
    served.Notify();
  };
  HealthWatch watch(options);
  served.WaitForNotification();
}

TEST(HealthWatch, EndsWithoutWaitingForItsInterval) {
  HealthWatchOptions options;
  options.interval = absl::InfiniteDuration();
  options.phase = [] { return ServerPhase::kReady; };
  options.stall = [] { return absl::ZeroDuration(); };
  options.set_serving = [](bool) {};
  HealthWatch watch(options);
}

TEST(HangCountTest, CountsChecksInARowThatFindAStallOfTheLimit) {
  const absl::Duration limit = absl::Seconds(30);
  EXPECT_EQ(HangCount(0, absl::Seconds(29), limit), 0);
  EXPECT_EQ(HangCount(0, limit, limit), 1);
  EXPECT_EQ(HangCount(7, absl::Hours(1), limit), 8);
  EXPECT_EQ(HangCount(19, absl::Seconds(1), limit), 0);
}

TEST(HangCountTest, WithoutALimitNothingHangs) {
  EXPECT_EQ(HangCount(5, absl::InfiniteDuration(), absl::ZeroDuration()), 0);
}

TEST(HealthWatch, SaysThatItHangsOnce) {
  std::atomic<int> checks{0};
  std::atomic<int> told{0};
  absl::Notification later;
  HealthWatchOptions options;
  options.interval = absl::Microseconds(10);
  options.phase = [] { return ServerPhase::kReady; };
  options.stall = [&] {
    if (++checks == 3 * kHangChecks) later.Notify();
    return absl::Seconds(31);
  };
  options.set_serving = [](bool) {};
  options.hang_limit = absl::Seconds(30);
  options.hung = [&](absl::Duration stall) {
    EXPECT_EQ(stall, absl::Seconds(31));
    EXPECT_EQ(checks, kHangChecks);
    ++told;
  };
  HealthWatch watch(options);
  later.WaitForNotification();
  EXPECT_EQ(told, 1);
}

TEST(GiveUpDeathTest, EndsTheProcessWithItsCause) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(GiveUp("listener", "no answer"),
              ::testing::ExitedWithCode(kExitNotServing),
              "listener.*no answer");
}

TEST(ExitAfterDeathTest, EndsTheProcessAsForced) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ExitAfter(absl::ZeroDuration());
        while (true) absl::SleepFor(absl::Seconds(1));
      },
      ::testing::ExitedWithCode(kExitForced), "forced");
}

// A process whose log nobody reads and whose drain hangs.
[[noreturn]] void HangWithAnUnreadLog() {
  int ends[2];
  if (::pipe(ends) != 0) _exit(1);
  ::dup2(ends[1], STDERR_FILENO);
  while (LogLinesDropped() == 0) {
    Log(LogSeverity::kInfo, "unread", {{"filler", std::string(10'000, 'x')}});
  }
  ExitAfter(absl::ZeroDuration());
  while (true) absl::SleepFor(absl::Seconds(1));
}

TEST(ExitAfterDeathTest, DoesNotWaitForAReaderOfTheLog) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(HangWithAnUnreadLog(), ::testing::ExitedWithCode(kExitForced),
              "");
}

}  // namespace
}  // namespace txl
