// What the emulator finds in kernels that are wrong. Kernels that are right run
// in kernel_test.cc and matrix_test.cc.

#include "tests/model/cuda/emulator/emulated_block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "model/cuda/device/kernel.h"
#include "model/cuda/device/matrix.h"

namespace txl::cuda {
namespace {

constexpr int kThreads = 64;
constexpr size_t kSharedBytes = kThreads * sizeof(float);

float* SharedFloats() { return reinterpret_cast<float*>(SharedMemory()); }

// How many of `orders` seeds give something else than 0, 1, 2, ... in `out`.
int WrongOrders(const LaunchShape& shape, std::vector<float>& out,
                absl::FunctionRef<void()> kernel) {
  std::vector<float> right(out.size());
  std::iota(right.begin(), right.end(), 0.f);
  int wrong = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    emulator::SetSeed(seed);
    std::fill(out.begin(), out.end(), -1.f);
    emulator::Launch(shape, kernel);
    // NaN is unlike everything.
    if (out != right) ++wrong;
  }
  return wrong;
}

TEST(EmulatedBlockTest, AMissingBarrierIsNoticed) {
  std::vector<float> out(kThreads);
  for (const bool barrier : {true, false}) {
    const int wrong = WrongOrders({{}, kThreads, kSharedBytes}, out, [&] {
      const int from = kThreads - 1 - Thread();
      SharedFloats()[Thread()] = static_cast<float>(from);
      if (barrier) BlockBarrier();
      out[Thread()] = SharedFloats()[from];
    });
    if (barrier) {
      EXPECT_EQ(wrong, 0);
    } else {
      EXPECT_GT(wrong, 90);
    }
  }
}

TEST(EmulatedBlockTest, ABarrierOfTheWarpIsNoneBetweenWarps) {
  // Each thread reads what its neighbour in the warp wrote, or the same thread
  // of the other warp, after some exchanges, in which warps could keep step.
  std::vector<float> out(kThreads);
  for (const int distance : {1, kWarp}) {
    const int wrong = WrongOrders({{}, kThreads, kSharedBytes}, out, [&] {
      SharedFloats()[Thread()] = static_cast<float>(Thread() ^ distance);
      WarpBarrier();
      WarpSum(1);
      out[Thread()] = SharedFloats()[Thread() ^ distance];
    });
    if (distance == 1) {
      EXPECT_EQ(wrong, 0);
    } else {
      EXPECT_GT(wrong, 50);
    }
  }
}

TEST(EmulatedBlockTest, MemoryThatIsWrittenTooEarlyIsNoticed) {
  // Two rounds through the same shared memory; the barrier between reading and
  // writing it again may be missing.
  std::vector<float> out(kThreads);
  for (const bool barrier : {true, false}) {
    const int wrong = WrongOrders({{}, kThreads, kSharedBytes}, out, [&] {
      const int other = (Thread() + 1) % kThreads;
      SharedFloats()[Thread()] = static_cast<float>(Thread());
      BlockBarrier();
      const float mine = SharedFloats()[other];
      if (barrier) BlockBarrier();
      SharedFloats()[Thread()] = -5;
      out[other] = mine;
    });
    if (barrier) {
      EXPECT_EQ(wrong, 0);
    } else {
      EXPECT_GT(wrong, 90);
    }
  }
}

// A kernel that copies a number for each thread; what it does right.
struct CopyKernel {
  bool waits = true;    // for the copy, before it reads
  bool is_free = true;  // nobody reads the place that is copied to
};

int WrongCopies(const CopyKernel& kernel) {
  alignas(16) static float numbers[4 * kWarp];
  for (int i = 0; i < kWarp; ++i) numbers[4 * i] = static_cast<float>(i);
  std::vector<float> out(kWarp);
  return WrongOrders({{}, kWarp, sizeof(numbers)}, out, [&] {
    float* const place = SharedFloats() + 4 * Lane();
    float* const other = SharedFloats() + 4 * (Lane() ^ 1);
    place[0] = static_cast<float>(Lane());
    WarpBarrier();
    const float before = other[0];
    if (kernel.is_free) WarpBarrier();
    CopyLater16(place, numbers + 4 * (Lane() ^ 1), true);
    CloseCopies();
    if (kernel.waits) FinishCopies<0>();
    WarpBarrier();
    const float after = other[0];
    FinishCopies<0>();
    out[Lane()] = before == static_cast<float>(Lane() ^ 1) ? after : NAN;
  });
}

TEST(EmulatedBlockTest, ACopyMayComeLateAndMayComeEarly) {
  EXPECT_EQ(WrongCopies({}), 0);
  EXPECT_GT(WrongCopies({.waits = false}), 90);
  EXPECT_GT(WrongCopies({.is_free = false}), 90);
}

TEST(EmulatedBlockTest, CopiesOfTheNewestGroupsMayStillBeOnTheirWay) {
  // Two groups, of which the kernel waits for one.
  alignas(16) static float numbers[8] = {0, 0, 0, 0, 1};
  std::vector<float> out(2);
  int wrong_first = 0;
  int wrong_second = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    emulator::SetSeed(seed);
    emulator::Launch({{}, kWarp, sizeof(numbers)}, [&] {
      if (Lane() != 0) return;
      CopyLater16(SharedFloats(), numbers, true);
      CloseCopies();
      CopyLater16(SharedFloats() + 4, numbers + 4, true);
      CloseCopies();
      FinishCopies<1>();
      if (SharedFloats()[0] != 0) ++wrong_first;
      if (SharedFloats()[4] != 1) ++wrong_second;
      FinishCopies<0>();
      EXPECT_EQ(SharedFloats()[4], 1);
    });
  }
  EXPECT_EQ(wrong_first, 0);
  EXPECT_GT(wrong_second, 20);
  EXPECT_LT(wrong_second, 80);
}

TEST(EmulatedBlockTest, SharedMemoryBeginsAsNanInEveryBlock) {
  int numbers = 0;
  emulator::Launch({{5}, kThreads, kSharedBytes}, [&] {
    if (!std::isnan(SharedFloats()[Thread()])) ++numbers;
    if (SharedMemory()[4 * Thread()] != 0xff) ++numbers;
    SharedFloats()[Thread()] = 1;
  });
  EXPECT_EQ(numbers, 0);
}

TEST(EmulatedBlockTest, WithoutSharedMemoryThereIsNone) {
  emulator::Launch({}, [] { EXPECT_EQ(SharedMemory(), nullptr); });
}

TEST(EmulatedBlockTest, BlocksRunInRandomOrders) {
  std::set<std::vector<int>> orders;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    emulator::SetSeed(seed);
    std::vector<int> order;
    emulator::Launch({{4, 3, 2}, kWarp}, [&] {
      const int index = (BlockZ() * 3 + BlockY()) * 4 + BlockX();
      if (Thread() == 0) order.push_back(index);
    });
    EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), 24u);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 10u);
}

TEST(EmulatedBlockTest, TheSameSeedGivesTheSameOrders) {
  std::set<std::vector<int>> orders;
  for (int run = 0; run < 3; ++run) {
    emulator::SetSeed(7);
    std::vector<int> order;
    emulator::Launch({{3}, kThreads}, [&] {
      order.push_back(Thread());
      WarpBarrier();
      order.push_back(Thread());
    });
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 1u);
}

TEST(EmulatedBlockTest, BarriersDoNotWaitForThreadsThatEnded) {
  int waited = 0;
  emulator::Launch({{}, kThreads}, [&] {
    if (Thread() % 3 == 0) return;
    WarpBarrier();
    BlockBarrier();
    ++waited;
  });
  EXPECT_EQ(waited, kThreads - (kThreads + 2) / 3);
}

// Ends the program: `kernel`, which has 64 threads and 256 bytes of shared
// memory.
#define EXPECT_KERNEL_FAILS(message, ...)                                   \
  EXPECT_DEATH(emulator::Launch({{}, kThreads, kSharedBytes}, __VA_ARGS__), \
               message)

TEST(EmulatedBlockDeathTest, ThreadsThatWaitAtDifferentBarriers) {
  EXPECT_KERNEL_FAILS("different barriers",
                      [] { Thread() == 5 ? WarpBarrier() : BlockBarrier(); });
  EXPECT_KERNEL_FAILS("different barriers", [] {
    if (Thread() < 3) {
      WarpSum(1);
    } else {
      WarpBarrier();
    }
  });
}

TEST(EmulatedBlockDeathTest, ThreadsThatExchangeWithSomeThatEnded) {
  EXPECT_KERNEL_FAILS("for some that ended", [] {
    if (Thread() != 40) WarpSum(1);
  });
}

TEST(EmulatedBlockDeathTest, ThreadsOfAWarpThatExchangeDifferentThings) {
  EXPECT_KERNEL_FAILS("exchange different things", [] {
    if (Thread() < 3) {
      ShuffleXor(1.0, 1);
    } else {
      ShuffleXor(1.f, 1);
    }
  });
}

TEST(EmulatedBlockDeathTest, CopiesThatCannotBe) {
  alignas(16) static float numbers[8];
  EXPECT_KERNEL_FAILS("not aligned",
                      [] { CopyLater16(SharedMemory(), numbers + 1, true); });
  EXPECT_KERNEL_FAILS("not aligned",
                      [] { CopyLater16(SharedMemory(), numbers + 1, false); });
  EXPECT_KERNEL_FAILS("not aligned",
                      [] { CopyLater16(SharedMemory() + 8, numbers, true); });
  EXPECT_KERNEL_FAILS("not shared memory",
                      [] { CopyLater16(numbers + 4, numbers, true); });
  EXPECT_KERNEL_FAILS("not shared memory", [] {
    CopyLater16(SharedMemory() + kSharedBytes, numbers, true);
  });
  EXPECT_KERNEL_FAILS("had waited for its copies", [] {
    for (int i = 0; i < 20; ++i) CopyLater16(SharedMemory(), numbers, true);
  });
}

TEST(EmulatedBlockDeathTest, KernelsThatDoNotWaitForEarlierOnes) {
  EXPECT_KERNEL_FAILS("had waited for earlier kernels", [] {
    if (Thread() != 40) AwaitEarlierKernels();
    emulator::CheckAwaited();
  });
}

TEST(EmulatedBlockDeathTest, MatrixRowsThatCannotBe) {
  EXPECT_KERNEL_FAILS("row that is not aligned", [] {
    uint32_t out[4];
    LoadMatrices(out, SharedMemory() + 2);
  });
  EXPECT_KERNEL_FAILS("row that is not in shared memory", [] {
    alignas(16) const uint16_t row[8] = {};
    uint32_t out[4];
    LoadMatricesTurned(out, row);
  });
}

// AddressSanitizer has its own message.
TEST(EmulatedBlockDeathTest, AWriteBehindSharedMemory) {
  EXPECT_KERNEL_FAILS("write behind the end|use-after-poison",
                      [] { SharedFloats()[Thread() + 1] = 0; });
}

TEST(EmulatedBlockDeathTest, LaunchesThatCannotBe) {
  EXPECT_DEATH(emulator::Launch({{0}, kWarp}, [] {}), "without blocks");
  EXPECT_DEATH(emulator::Launch({{}, 40}, [] {}), "whole warps");
  EXPECT_DEATH(emulator::Launch({}, [] { emulator::Launch({}, [] {}); }),
               "inside of a launch");
}

}  // namespace
}  // namespace txl::cuda
