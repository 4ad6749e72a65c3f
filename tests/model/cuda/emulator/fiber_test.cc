#include "tests/model/cuda/emulator/fiber.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace txl::cuda::emulator {
namespace {

TEST(FiberTest, EachKeepsItsPlaceAndItsVariables) {
  FiberPool pool;
  int running = 0;
  std::vector<std::vector<int>> seen(3);
  pool.Start(3, [&] {
    const int self = running;
    for (int i = 0; i < 4; ++i) {
      seen[self].push_back(10 * self + i);
      pool.Yield();
    }
  });
  const auto resume = [&](int fiber) {
    running = fiber;
    return pool.Resume(fiber);
  };
  // In another order each time.
  for (const int fiber : {2, 0, 1, 1, 0, 2, 0, 2, 1, 1, 2, 0}) {
    EXPECT_FALSE(resume(fiber));
  }
  for (const int fiber : {0, 1, 2}) EXPECT_TRUE(resume(fiber));
  EXPECT_EQ(seen[0], (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(seen[1], (std::vector<int>{10, 11, 12, 13}));
  EXPECT_EQ(seen[2], (std::vector<int>{20, 21, 22, 23}));
}

TEST(FiberTest, StacksAreUsedAgain) {
  FiberPool pool;
  int runs = 0;
  for (int round = 0; round < 50; ++round) {
    pool.Start(round % 2 == 0 ? 5 : 40, [&] {
      // A good part of the stack, and deeper calls than the last round's.
      volatile unsigned char large[100 << 10];
      large[0] = static_cast<unsigned char>(runs);
      large[sizeof(large) - 1] = static_cast<unsigned char>(runs);
      pool.Yield();
      EXPECT_EQ(large[0], large[sizeof(large) - 1]);
      ++runs;
    });
    for (int fiber = 0; fiber < (round % 2 == 0 ? 5 : 40); ++fiber) {
      EXPECT_FALSE(pool.Resume(fiber));
      EXPECT_TRUE(pool.Resume(fiber));
    }
  }
  EXPECT_EQ(runs, 25 * 5 + 25 * 40);
}

TEST(FiberTest, AnExceptionIsCaughtInsideOfItsFiber) {
  FiberPool pool;
  int caught = 0;
  pool.Start(2, [&] {
    try {
      pool.Yield();
      throw 7;
    } catch (int value) {
      caught += value;
    }
  });
  for (const int fiber : {0, 1, 1, 0}) pool.Resume(fiber);
  EXPECT_EQ(caught, 14);
}

// Not for a sanitizer, which says more than "killed".
TEST(FiberDeathTest, AStackThatIsFullEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        FiberPool pool;
        pool.Start(1, [] {
          volatile unsigned char large[300 << 10];
          for (size_t i = sizeof(large); i > 0; i -= 64) large[i - 1] = 1;
        });
        pool.Resume(0);
      },
      "");
}

}  // namespace
}  // namespace txl::cuda::emulator
