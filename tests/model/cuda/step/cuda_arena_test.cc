#include "model/cuda/step/cuda_arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

constexpr int kArenaLayers = 3;
constexpr int kArenaWidth = 70;
constexpr int kStride = 128;
constexpr int64_t kArenaMemory = 50;
constexpr int64_t kCapacity = 64;
constexpr int64_t kArenaSlots = 3;

RingGeometry ArenaRing() {
  RingGeometry ring;
  ring.mem_len = kArenaMemory;
  ring.spare = 8;
  ring.window = kArenaMemory + 1;
  ring.zero_start = true;
  return CudaRing(ring);
}

CudaShape ArenaShape() {
  CudaShape shape;
  shape.layers = kArenaLayers;
  shape.width = kArenaWidth;
  shape.stride = kStride;
  return shape;
}

TEST(CudaRingTest, HasWholeTilesAndAtLeastTheSpareRows) {
  for (int64_t memory = 0; memory < 100; ++memory) {
    RingGeometry ring;
    ring.mem_len = memory;
    ring.spare = 20;
    const RingGeometry whole = CudaRing(ring);
    EXPECT_EQ(whole.mem_len, memory);
    EXPECT_EQ(whole.capacity() % kRingTile, 0);
    EXPECT_GE(whole.spare, 20);
    EXPECT_LT(whole.spare, 20 + kRingTile);
  }
}

template <typename M>
class CudaArenaTest : public ::testing::Test {
 protected:
  // What the slot's row of a position holds, all layers one behind another.
  std::vector<M> Row(int32_t slot, int64_t position) const {
    std::vector<M> row(kArenaLayers * kStride);
    Stream stream;
    for (int layer = 0; layer < kArenaLayers; ++layer) {
      stream.Copy(row.data() + layer * kStride,
                  RingRow(arena_.Layer(layer), slot, position),
                  kStride * sizeof(M));
    }
    stream.Wait();
    return row;
  }
  // Rows of positions first..last-1 of all layers, all different.
  static std::vector<M> Packed(int64_t first, int64_t last, float seed) {
    std::vector<M> numbers;
    for (int layer = 0; layer < kArenaLayers; ++layer) {
      for (int64_t t = first; t < last; ++t) {
        const std::vector<M> row = Expected(t, seed);
        const auto begin = row.begin() + layer * kStride;
        numbers.insert(numbers.end(), begin, begin + kStride);
      }
    }
    return numbers;
  }
  static float Number(int layer, int64_t t, int k) {
    return static_cast<float>((layer * 31 + t * 7 + k) % 200);
  }
  // The row of a position, all layers one behind another; zeros behind it.
  static std::vector<M> Expected(int64_t t, float seed) {
    std::vector<M> row(kArenaLayers * kStride);
    for (int layer = 0; layer < kArenaLayers; ++layer) {
      for (int k = 0; k < kArenaWidth; ++k) {
        row[layer * kStride + k] = Narrow<M>(Number(layer, t, k) + seed);
      }
    }
    return row;
  }
  static bool Same(const std::vector<M>& a, const std::vector<M>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](M x, M y) {
      return std::memcmp(&x, &y, sizeof(M)) == 0;
    });
  }
  void Write(int32_t slot, int64_t first, int64_t last, float seed) {
    const Array<M> packed = ToDevice(Packed(first, last, seed));
    arena_.Unpack(slot, first, last, packed.data());
    stream_.Wait();
  }

  Stream stream_;
  CudaArena<M> arena_{ArenaRing(), ArenaShape(), kArenaSlots, stream_};
};
using ArenaFormats = ::testing::Types<float, Bf16, F16>;
TYPED_TEST_SUITE(CudaArenaTest, ArenaFormats);

TYPED_TEST(CudaArenaTest, KnowsItsSizesBeforeAnythingIsAllocated) {
  EXPECT_EQ(this->arena_.bytes_per_slot(),
            int64_t{kArenaLayers * kStride} * kCapacity * sizeof(TypeParam));
  EXPECT_EQ(CudaSlotBytes(ArenaRing(), ArenaShape(), sizeof(TypeParam)),
            this->arena_.bytes_per_slot());
}

TYPED_TEST(CudaArenaTest, BeginsWithZeros) {
  const std::vector<TypeParam> zeros(kArenaLayers * kStride);
  for (int32_t slot = 0; slot < kArenaSlots; ++slot) {
    for (int64_t t = 0; t < kCapacity; ++t) {
      EXPECT_TRUE(this->Same(this->Row(slot, t), zeros));
    }
  }
}

// Ranges that lie in one piece, that wrap, that are full, that are empty.
TYPED_TEST(CudaArenaTest, RowsGoToTheirPlacesAndComeBack) {
  using M = TypeParam;
  const std::pair<int64_t, int64_t> ranges[] = {
      {0, 10}, {100, 150}, {-50, 0}, {63, 65}, {7, 7}};
  for (const auto& [first, last] : ranges) {
    CudaArena<M>& arena = this->arena_;
    arena.Clear(1);
    this->Write(1, first, last, 3);
    for (int64_t t = last - kCapacity; t < last; ++t) {
      const std::vector<M> zeros(kArenaLayers * kStride);
      EXPECT_TRUE(
          this->Same(this->Row(1, t), t < first ? zeros : this->Expected(t, 3)))
          << "position " << t;
    }
    const Array<M> back =
        Unwritten<M>((last - first) * int64_t{kArenaLayers * kStride});
    arena.Pack(1, first, last, back.data());
    this->stream_.Wait();
    EXPECT_TRUE(this->Same(ToHost(back), this->Packed(first, last, 3)));
  }
}

TYPED_TEST(CudaArenaTest, SlotsLieApart) {
  for (int32_t slot = 0; slot < kArenaSlots; ++slot) {
    this->Write(slot, 0, kArenaMemory, static_cast<float>(slot));
  }
  this->arena_.Copy(2, 0);
  this->arena_.Clear(1);
  this->stream_.Wait();
  for (int64_t t = 0; t < kArenaMemory; ++t) {
    EXPECT_TRUE(this->Same(this->Row(0, t), this->Expected(t, 2)));
    EXPECT_TRUE(this->Same(this->Row(1, t),
                           std::vector<TypeParam>(kArenaLayers * kStride)));
    EXPECT_TRUE(this->Same(this->Row(2, t), this->Expected(t, 2)));
  }
}

TYPED_TEST(CudaArenaTest, AStartIsOneRowAtAllPositionsBeforeTheFirst) {
  std::vector<float> start(kStride);
  for (int k = 0; k < kArenaWidth; ++k) start[k] = 0.5f + static_cast<float>(k);
  const Array<float> there = ToDevice(start);
  this->arena_.Clear(1);
  this->arena_.FillStart(1, 2, there.data());
  this->stream_.Wait();
  for (int64_t t = -kArenaMemory; t < kCapacity - kArenaMemory; ++t) {
    const std::vector<TypeParam> row = this->Row(1, t);
    for (int i = 0; i < kArenaLayers * kStride; ++i) {
      const bool written = t < 0 && i / kStride == 2;
      EXPECT_EQ(Widen(row[i]), written ? start[i % kStride] : 0);
    }
    EXPECT_EQ(Widen(this->Row(0, t)[2 * kStride]), 0);
    EXPECT_EQ(Widen(this->Row(2, t)[2 * kStride]), 0);
  }
}

TEST(CudaArenaMemoryTest, MoreSlotsThanTheDeviceHoldsAreOutOfMemory) {
  Stream stream;
  EXPECT_THROW(
      CudaArena<float>(ArenaRing(), ArenaShape(), int64_t{1} << 40, stream),
      std::bad_alloc);
}

}  // namespace
}  // namespace txl::cuda
