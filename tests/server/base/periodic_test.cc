#include "server/base/periodic.h"

#include <gtest/gtest.h>

#include <atomic>

#include "absl/synchronization/notification.h"

namespace txl {
namespace {

TEST(PeriodicTest, ActsAgainAndAgain) {
  std::atomic<int> count{0};
  absl::Notification third;
  const Periodic periodic(absl::Microseconds(10), [&] {
    if (++count == 3) third.Notify();
  });
  third.WaitForNotification();
}

TEST(PeriodicTest, EndsWithoutWaitingForItsInterval) {
  bool acted = false;
  {
    const Periodic periodic(absl::InfiniteDuration(), [&] { acted = true; });
  }
  EXPECT_FALSE(acted);
}

TEST(PeriodicTest, EndsAfterACallThatRuns) {
  absl::Notification begun;
  std::atomic<bool> done{false};
  {
    const Periodic periodic(absl::Microseconds(1), [&] {
      if (begun.HasBeenNotified()) return;
      begun.Notify();
      done = true;
    });
    begun.WaitForNotification();
  }
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace txl
