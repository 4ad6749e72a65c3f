#include "server/base/task_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"

namespace txl {
namespace {

TEST(TaskThreadTest, RunsTasksInOrderOnOneThread) {
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  {
    TaskThread thread;
    for (int i = 0; i < 100; ++i) {
      thread.Run([&, i] {
        order.push_back(i);
        threads.push_back(std::this_thread::get_id());
      });
    }
  }
  ASSERT_EQ(order.size(), 100);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(order[i], i);
    EXPECT_EQ(threads[i], threads[0]);
  }
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(TaskThreadTest, RunDoesNotWaitForARunningTask) {
  absl::Notification release;
  absl::Notification second_ran;
  TaskThread thread;
  thread.Run([&] { release.WaitForNotification(); });
  thread.Run([&] { second_ran.Notify(); });  // would hang if Run waited
  EXPECT_FALSE(second_ran.HasBeenNotified());
  release.Notify();
  second_ran.WaitForNotification();
}

TEST(TaskThreadTest, RunsWhatItWasGivenBeforeItEnds) {
  int ran = 0;
  {
    TaskThread thread;
    thread.Run([&] {
      ++ran;
      thread.Run([&ran] { ++ran; });
    });
  }
  EXPECT_EQ(ran, 2);
}

TEST(TaskThreadTest, LetsGoOfATaskOnceItRan) {
  auto held = std::make_shared<int>(0);
  absl::Notification done;
  TaskThread thread;
  thread.Run([held] { ++*held; });
  thread.Run([&done] { done.Notify(); });
  done.WaitForNotification();
  EXPECT_EQ(held.use_count(), 1);
}

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
