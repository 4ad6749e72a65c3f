#include <gtest/gtest.h>

#include <vector>

#include "model/cuda/kernels/rows.h"

namespace txl::cuda {
namespace {

template <typename M>
class StoreRowsTest : public ::testing::Test {};
using Formats = ::testing::Types<float, Bf16, F16>;
TYPED_TEST_SUITE(StoreRowsTest, Formats);

TYPED_TEST(StoreRowsTest, WritesEachRowAtItsPlaceInItsRing) {
  using M = TypeParam;
  constexpr int64_t kStride = 64;
  constexpr int64_t kCapacity = 32;
  std::vector<M> memory(3 * kCapacity * kStride, Narrow<M>(-1));
  Rings<M> rings;
  rings.rows = memory.data();
  rings.slot_stride = kCapacity * kStride;
  rings.capacity = kCapacity;
  rings.stride = kStride;
  const std::vector<int32_t> slots = {2, 0, -1, 2};
  const std::vector<int64_t> positions = {31, -1, 5, 32};
  std::vector<float> x(4 * kStride);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 8;
  Stream stream;
  LaunchStoreRows(stream, {4, slots.data(), positions.data()}, x.data(),
                  kStride, rings);
  stream.Wait();
  const auto row = [&](int slot, int index) {
    return memory.data() + (slot * kCapacity + index) * kStride;
  };
  for (int64_t k = 0; k < kStride; ++k) {
    const auto stored = [&](int r) {
      return Widen(Narrow<M>(x[r * kStride + k]));
    };
    EXPECT_EQ(Widen(row(2, 31)[k]), stored(0));
    EXPECT_EQ(Widen(row(0, 31)[k]), stored(1));  // -1 mod 32
    EXPECT_EQ(Widen(row(2, 0)[k]), stored(3));   // 32 mod 32
    EXPECT_EQ(Widen(row(1, 5)[k]), -1);
  }
}

}  // namespace
}  // namespace txl::cuda
