#include "model/cuda/device/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace txl::cuda {
namespace {

TEST(NumbersTest, EveryHalfIsItselfAgain) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const F16 x = {static_cast<uint16_t>(bits)};
    if ((bits & 0x7fff) > 0x7c00) {
      EXPECT_TRUE(std::isnan(Widen(x)));
      continue;
    }
    EXPECT_EQ(Narrow<F16>(Widen(x)).bits, bits);
  }
}

}  // namespace
}  // namespace txl::cuda
