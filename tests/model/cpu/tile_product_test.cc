// Tiles where the kernel grants them, and where it does not. A program of its
// own: a process asks once. Their numbers: integer_product_test.cc.

#include "model/cpu/tile_product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "model/cpu/vector_target.h"

namespace txl {
namespace {

using ::testing::Contains;
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

}  // namespace
}  // namespace txl
