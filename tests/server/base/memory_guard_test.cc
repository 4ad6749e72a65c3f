#include "server/base/memory_guard.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/base/log.h"

namespace txl {
namespace {

TEST(ShouldShedTest, AboveNinetyFivePercentUntilBelowNinetyThree) {
  EXPECT_FALSE(ShouldShed(false, 950, 1000));
  EXPECT_TRUE(ShouldShed(false, 951, 1000));
  EXPECT_TRUE(ShouldShed(true, 931, 1000));
  EXPECT_FALSE(ShouldShed(true, 930, 1000));
  EXPECT_FALSE(ShouldShed(false, 940, 1000));
}

TEST(ShouldShedTest, DoesNotOverflow) {
  constexpr int64_t kMost = int64_t{1} << 62;
  EXPECT_FALSE(ShouldShed(false, 1, kMost));
  EXPECT_TRUE(ShouldShed(false, kMost, kMost));
}

TEST(ResidentBytesTest, CountWhatIsWritten) {
  constexpr int64_t kMore = int64_t{64} << 20;
  const int64_t before = ResidentBytes();
  ASSERT_GT(before, 0);
  std::vector<char> memory(kMore);
  std::memset(memory.data(), 1, memory.size());
  EXPECT_GE(ResidentBytes() - before, kMore / 2);
}

// A process whose memory is played; each sample is one call of `resident`.
class MemoryGuardTest : public ::testing::Test {
 protected:
  MemoryGuardOptions Options() {
    MemoryGuardOptions options;
    options.limit = 1000;
    options.interval = absl::Microseconds(100);
    options.resident = [this] { return resident_.load(); };
    options.trim = [this] {
      ++trims_;
      resident_ -= unused_.exchange(0);
    };
    return options;
  }
  // Until it is so; an answer that never comes is the test's time limit.
  static void Await(const MemoryGuard& guard, bool shedding) {
    while (guard.Shedding() != shedding) std::this_thread::yield();
  }

  LogCapture capture_;
  std::atomic<int64_t> resident_{100};
  std::atomic<int64_t> unused_{0};  // of the heap, what a trim gives back
  std::atomic<int> trims_{0};
};

TEST_F(MemoryGuardTest, KnowsTheBytesAtOnce) {
  const MemoryGuard guard(Options());
  EXPECT_EQ(guard.resident_bytes(), 100);
  EXPECT_EQ(guard.limit(), 1000);
  EXPECT_FALSE(guard.Shedding());
}

TEST_F(MemoryGuardTest, ShedsAndStopsAndSaysBoth) {
  const MemoryGuard guard(Options());
  resident_ = 960;
  Await(guard, true);
  resident_ = 900;
  Await(guard, false);
  while (capture_.lines().size() < 2) std::this_thread::yield();
  EXPECT_NE(capture_.lines()[0].find("\"shedding\":true"), std::string::npos);
  EXPECT_NE(capture_.lines()[1].find("\"shedding\":false"), std::string::npos);
}

TEST_F(MemoryGuardTest, ShedsNothingWhenTheHeapGivesEnoughBack) {
  const MemoryGuard guard(Options());
  unused_ = 500;
  resident_ = 1000;
  while (guard.resident_bytes() != 500) std::this_thread::yield();
  EXPECT_FALSE(guard.Shedding());
  EXPECT_EQ(trims_, 1);
  EXPECT_TRUE(capture_.lines().empty());
}

TEST_F(MemoryGuardTest, TrimsAgainWhileItSheds) {
  const MemoryGuard guard(Options());
  resident_ = 1000;
  Await(guard, true);
  unused_ = 500;
  Await(guard, false);
  EXPECT_GE(trims_, 2);
}

}  // namespace
}  // namespace txl
