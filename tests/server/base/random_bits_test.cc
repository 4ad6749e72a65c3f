#include "server/base/random_bits.h"

#include <gtest/gtest.h>

#include <set>

namespace txl {
namespace {

TEST(RandomBits, NeverRepeatAndReachEveryBit) {
  std::set<uint64_t> seen;
  uint64_t ones = 0;
  uint64_t zeros = 0;
  for (int i = 0; i < 200; ++i) {
    const uint64_t bits = RandomBits();
    EXPECT_TRUE(seen.insert(bits).second);
    ones |= bits;
    zeros |= ~bits;
  }
  EXPECT_EQ(ones, UINT64_MAX);
  EXPECT_EQ(zeros, UINT64_MAX);
}

}  // namespace
}  // namespace txl
