#include <gtest/gtest.h>

#include <thread>

#include "server/base/task_thread.h"

namespace txl {
namespace {

// Where a wake-up is lost, the test runs out of its time.
constexpr absl::Duration kForever = absl::Hours(1);

TEST(WakeSignal, OneBeforeTheWaitIsNotLost) {
  WakeSignal signal;
  signal.Set();
  signal.Wait(kForever);
}

TEST(WakeSignal, OneWhileItWaitsEndsTheWait) {
  WakeSignal signal;
  std::thread other([&] { signal.Set(); });
  signal.Wait(kForever);
  other.join();
}

}  // namespace
}  // namespace txl
