#include "server/listener_watch.h"

#include <gtest/gtest.h>

#include <atomic>

#include "absl/synchronization/notification.h"
#include "tests/fakes/fake_clock.h"

namespace txl {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(5);

// Attempts one second apart, '+' those that succeed; whether it was deaf after
// the last.
bool DeafAfter(const std::string& attempts) {
  FailedAttempts failed;
  absl::Duration now = absl::Hours(1);
  for (const char attempt : attempts) {
    failed = WithAttempt(failed, attempt == '+', now);
    now += absl::Seconds(1);
  }
  return IsDeaf(failed, now, kLimit);
}

TEST(IsDeafTest, WhenEveryAttemptFailsForTheLimit) {
  EXPECT_TRUE(DeafAfter("-----"));
  EXPECT_TRUE(DeafAfter("+++-----"));
}

TEST(IsDeafTest, NotBefore) {
  EXPECT_FALSE(DeafAfter(""));
  EXPECT_FALSE(DeafAfter("----"));
}

TEST(IsDeafTest, NotWhenOneSucceedsInBetween) {
  EXPECT_FALSE(DeafAfter("----+----"));
  EXPECT_FALSE(DeafAfter("-----+"));
}

TEST(IsDeafTest, NotWhenTheProcessWasStoppedDuringAnAttempt) {
  FailedAttempts failed = WithAttempt({}, false, absl::ZeroDuration());
  EXPECT_FALSE(IsDeaf(failed, absl::Hours(1), kLimit));
  failed = WithAttempt(failed, false, absl::Hours(1));
  EXPECT_FALSE(IsDeaf(failed, absl::Hours(1), kLimit));
  failed = WithAttempt(failed, true, absl::Hours(1));
  EXPECT_FALSE(IsDeaf(failed, absl::Hours(2), kLimit));
}

TEST(ListenerWatchTest, SaysWhyTheLastAttemptFailed) {
  FakeClock clock;
  std::atomic<int> attempts{0};
  std::atomic<bool> told{false};
  absl::Status why;
  absl::Notification deaf;
  ListenerWatchOptions options;
  options.clock = &clock;
  options.interval = absl::Microseconds(10);
  options.limit = kLimit;
  options.attempt = [&] {
    ++attempts;
    clock.Advance(absl::Seconds(1));
    return absl::UnavailableError("connection refused");
  };
  options.deaf = [&](const absl::Status& status) {
    if (told.exchange(true)) return;
    EXPECT_EQ(attempts, 5);
    why = status;
    deaf.Notify();
  };
  const ListenerWatch watch(options);
  deaf.WaitForNotification();
  EXPECT_EQ(why.message(), "connection refused");
}

}  // namespace
}  // namespace txl
