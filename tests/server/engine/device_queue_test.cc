#include "server/engine/device_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"

namespace txl {
namespace {

TEST(DeviceQueueTest, RunsTasksInOrderOnOneThread) {
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  {
    DeviceQueue queue;
    for (int i = 0; i < 100; ++i) {
      queue.Add([&, i] {
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

TEST(DeviceQueueTest, AddDoesNotWaitForARunningTask) {
  absl::Notification release;
  absl::Notification second_ran;
  DeviceQueue queue;
  queue.Add([&] { release.WaitForNotification(); });
  queue.Add([&] { second_ran.Notify(); });  // would hang if Add waited
  EXPECT_FALSE(second_ran.HasBeenNotified());
  release.Notify();
  second_ran.WaitForNotification();
}

TEST(DeviceQueueTest, TasksAreReleasedAfterTheyRan) {
  auto held = std::make_shared<int>(1);
  {
    DeviceQueue queue;
    queue.Add([held] {});
  }
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace txl
