#include "model/cuda/device/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/model/cuda/device/device_kernels.h"
#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

// The formats by their definition: sign, exponent, fraction.
struct Bf16Layout {
  using Number = Bf16;
  static constexpr int kFraction = 7;
  static constexpr int kBias = 127;
};
struct F16Layout {
  using Number = F16;
  static constexpr int kFraction = 10;
  static constexpr int kBias = 15;
};

// What bits mean; infinity for infinity, NaN for NaN.
template <typename Layout>
double Meaning(uint32_t bits) {
  const double sign = bits >> 15 != 0 ? -1 : 1;
  const int fraction = bits & ((1 << Layout::kFraction) - 1);
  const int exponent = (bits & 0x7fff) >> Layout::kFraction;
  const int most = 0x7fff >> Layout::kFraction;
  if (exponent == most) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  const int hidden = exponent == 0 ? 0 : 1 << Layout::kFraction;
  return std::ldexp(sign * (hidden + fraction),
                    std::max(exponent, 1) - Layout::kBias - Layout::kFraction);
}

template <typename Layout>
class NumbersTest : public ::testing::Test {
 protected:
  using T = typename Layout::Number;

  static T Of(uint32_t bits) { return {static_cast<uint16_t>(bits)}; }
  static bool IsNan(uint32_t bits) { return std::isnan(Meaning<Layout>(bits)); }
  static constexpr uint32_t kInfinity = (0x7fff >> Layout::kFraction)
                                        << Layout::kFraction;
};
using Layouts = ::testing::Types<Bf16Layout, F16Layout>;
TYPED_TEST_SUITE(NumbersTest, Layouts);

TYPED_TEST(NumbersTest, EveryNumberHasItsMeaningAndIsItselfAgain) {
  using T = typename TestFixture::T;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = Widen(TestFixture::Of(bits));
    if (TestFixture::IsNan(bits)) {
      ASSERT_TRUE(std::isnan(x)) << bits;
      ASSERT_TRUE(TestFixture::IsNan(Narrow<T>(x).bits)) << bits;
      continue;
    }
    ASSERT_EQ(x, Meaning<TypeParam>(bits)) << bits;
    ASSERT_EQ(std::signbit(x), bits >> 15 != 0) << bits;
    ASSERT_EQ(Narrow<T>(x).bits, bits);
  }
}

TYPED_TEST(NumbersTest, BetweenTwoNumbersTheNearerIsTakenAndTheEvenOneOfATie) {
  using T = typename TestFixture::T;
  for (uint32_t low = 0; low < TestFixture::kInfinity; ++low) {
    // Infinity stands where the next number would be.
    const double below = Meaning<TypeParam>(low);
    const double above = low + 1 < TestFixture::kInfinity
                             ? Meaning<TypeParam>(low + 1)
                             : 2 * below - Meaning<TypeParam>(low - 1);
    const double tie = (below + above) / 2;
    const float middle = static_cast<float>(tie);
    // The last tie of Bf16, and those below its normal numbers, are float32
    // numbers as well.
    ASSERT_EQ(middle, tie);
    const uint32_t even = low % 2 == 0 ? low : low + 1;
    for (const float sign : {1.f, -1.f}) {
      const uint32_t sign_bit = sign < 0 ? 0x8000 : 0;
      const auto narrow = [&](float x) { return Narrow<T>(sign * x).bits; };
      ASSERT_EQ(narrow(middle), even | sign_bit);
      ASSERT_EQ(narrow(std::nextafter(middle, 0.f)), low | sign_bit);
      ASSERT_EQ(narrow(std::nextafter(middle, HUGE_VALF)),
                (low + 1) | sign_bit);
    }
  }
}

TYPED_TEST(NumbersTest, WhatIsTooLargeBecomesInfinityAndNanStaysNan) {
  using T = typename TestFixture::T;
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(Narrow<T>(largest).bits, TestFixture::kInfinity);
  EXPECT_EQ(Narrow<T>(-largest).bits, TestFixture::kInfinity | 0x8000);
  EXPECT_EQ(Narrow<T>(HUGE_VALF).bits, TestFixture::kInfinity);
  // Every NaN of float32 whose payload lies in one bit.
  for (int bit = 0; bit < 23; ++bit) {
    const uint32_t payload = 0x7f800000u | 1u << bit;
    EXPECT_TRUE(TestFixture::IsNan(Narrow<T>(BitsToFloat(payload)).bits));
    EXPECT_TRUE(
        TestFixture::IsNan(Narrow<T>(BitsToFloat(payload | 1u << 31)).bits));
  }
}

TYPED_TEST(NumbersTest, KernelsRoundToTheSameBitsAsTheHost) {
  using T = typename TestFixture::T;
  std::mt19937 random(1);
  std::vector<float> x;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    x.push_back(Widen(TestFixture::Of(bits)));
    x.push_back(BitsToFloat(static_cast<uint32_t>(random())));
  }
  const Array<float> there = ToDevice(x);
  const Array<T> narrow = Unwritten<T>(there.size());
  const Array<float> wide = Unwritten<float>(there.size());
  Stream stream;
  LaunchNarrow(stream, there.data(), narrow.data(), there.size());
  LaunchWiden(stream, narrow.data(), wide.data(), there.size());
  stream.Wait();
  const std::vector<T> narrowed = ToHost(narrow);
  const std::vector<float> widened = ToHost(wide);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(narrowed[i].bits, Narrow<T>(x[i]).bits) << x[i];
    if (std::isnan(widened[i])) {
      ASSERT_TRUE(TestFixture::IsNan(narrowed[i].bits));
    } else {
      ASSERT_EQ(FloatToBits(widened[i]), FloatToBits(Widen(narrowed[i])));
    }
  }
}

TEST(NumbersTest, Float32StaysAsItIs) {
  for (const uint32_t bits : {0u, 1u, 0x80000000u, 0x7f7fffffu, 0x3f800001u}) {
    EXPECT_EQ(FloatToBits(Narrow<float>(BitsToFloat(bits))), bits);
    EXPECT_EQ(FloatToBits(Widen(BitsToFloat(bits))), bits);
  }
}

}  // namespace
}  // namespace txl::cuda
