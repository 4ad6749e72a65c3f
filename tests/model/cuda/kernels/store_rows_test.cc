#include <gtest/gtest.h>

#include <vector>

#include "model/cuda/kernels/rows.h"
#include "tests/model/cuda/device_data.h"

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
  const Array<M> memory =
      ToDevice(std::vector<M>(3 * kCapacity * kStride, Narrow<M>(-1)));
  Rings<M> rings;
  rings.rows = memory.data();
  rings.slot_stride = kCapacity * kStride;
  rings.capacity = kCapacity;
  rings.stride = kStride;
  const Array<int32_t> slots = ToDevice<int32_t>({2, 0, -1, 2});
  const Array<int64_t> positions = ToDevice<int64_t>({31, -1, 5, 32});
  std::vector<float> x(4 * kStride);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 8;
  const Array<float> x_there = ToDevice(x);
  Stream stream;
  const StepRows rows = {4, slots.data(), positions.data()};
  LaunchStoreRows(stream, StoreArgs<M>{rows, x_there.data(), kStride, rings});
  stream.Wait();
  const std::vector<M> stored = ToHost(memory);
  // What should lie in a ring's row: row r of x, or what was there before.
  const auto expect_row = [&](int slot, int index, int r) {
    for (int64_t k = 0; k < kStride; ++k) {
      const float found =
          Widen(stored[(slot * kCapacity + index) * kStride + k]);
      EXPECT_EQ(found, r < 0 ? -1 : Widen(Narrow<M>(x[r * kStride + k])));
    }
  };
  for (int slot = 0; slot < 3; ++slot) {
    for (int index = 0; index < kCapacity; ++index) {
      const int r = slot == 2 && index == 31   ? 0
                    : slot == 0 && index == 31 ? 1  // -1 mod 32
                    : slot == 2 && index == 0  ? 3  // 32 mod 32
                                               : -1;
      expect_row(slot, index, r);
    }
  }
}

}  // namespace
}  // namespace txl::cuda
