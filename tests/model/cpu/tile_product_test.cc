// Tiles where the kernel grants them, and where it does not. A program of its
// own: a process asks once. Their numbers: integer_product_test.cc.

#include "model/cpu/tile_product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "model/cpu/aligned_buffer.h"
#include "model/cpu/thread_pool.h"
#include "model/cpu/vector_target.h"

namespace txl {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Not;

// Linux's own account of the processor.
bool ProcessorHasTiles() {
  std::ifstream info("/proc/cpuinfo");
  std::ostringstream text;
  text << info.rdbuf();
  return text.str().find(" amx_int8") != std::string::npos;
}

// The kernel grants no tiles to a process with a stack for signals that has no
// room for them.
void UseSmallSignalStack() {
  static char stack[4096];
  stack_t small = {};
  small.ss_sp = stack;
  small.ss_size = sizeof(stack);
  if (sigaltstack(&small, nullptr) != 0) std::exit(3);
}

// In a process of its own, before anything has asked.
[[noreturn]] void ReportRefusal() {
  UseSmallSignalStack();
  const bool has = HasTiles();
  std::fprintf(stderr, "%s; best: %s", TilesRefusal().c_str(),
               VectorTargets().front().c_str());
  std::exit(has ? 1 : 0);
}

TEST(TileProductTest, ARefusalHasAReasonAndVectorsTakeOver) {
  if (!ProcessorHasTiles()) {
    EXPECT_FALSE(HasTiles());
    EXPECT_EQ(TilesRefusal(), "");
    return;
  }
  EXPECT_EXIT(ReportRefusal(), testing::ExitedWithCode(0),
              "arch_prctl refuses the tiles of AMX: .+; best: AVX3");
}

// Behind the test above, which must not find an answer.
TEST(TileProductTest, TheBestTargetHasTilesWhereTheyAreGranted) {
  EXPECT_EQ(HasTiles(), ProcessorHasTiles());
  if (HasTiles()) {
    EXPECT_EQ(VectorTargets().front(), "AMX");
    EXPECT_EQ(TilesRefusal(), "");
  } else {
    EXPECT_THAT(VectorTargets(), Not(Contains("AMX")));
  }
}

#if defined(__x86_64__)

// Whether tiles of this thread have to be saved when it waits (Intel 64 and
// IA-32 Architectures Software Developer's Manual, volume 1, section 13.6).
bool TilesAreInUse() {
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
  return (low & (3u << 17)) != 0;
}

TEST(TileProductTest, NoTileIsInUseBehindAPoolsWork) {
  if (!HasTiles()) return;
  const AlignedBuffer<int8_t> numbers(kPanel * kQuad * 16);
  const std::vector<IntegerRow> rows(8, IntegerRow{1, 0});
  const std::vector<float> scales(kPanel, 1.0f);
  for (const int threads : {1, 2}) {
    ThreadPool pool(threads);
    std::vector<char> used(8), left(8);
    const auto multiply = [&](int64_t i, int) {
      AlignedBuffer<float> out(8 * kPanel);
      IntegerProduct product;
      product.a = {numbers.data(), 64, rows.data()};
      product.rows = 8;
      product.b = numbers.data();
      product.b_scales = scales.data();
      product.k = 64;
      product.out = out.data();
      product.out_stride = kPanel;
      MultiplyOnTiles(product);
      used[i] = TilesAreInUse();
    };
    pool.Run(8, multiply);
    EXPECT_THAT(used, Each(true));
    EXPECT_FALSE(TilesAreInUse());
    // Before a thread's next work.
    pool.Run(8, [&](int64_t i, int) { left[i] = TilesAreInUse(); });
    EXPECT_THAT(left, Each(false));
  }
}

#endif

}  // namespace
}  // namespace txl
