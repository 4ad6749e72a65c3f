#include "model/cpu/native_arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace txl {
namespace {

constexpr NativeShape kShape = {
    2, 3, 5, 11, NumberFormat::kF32, NumberFormat::kF32};

RingGeometry Ring() {
  RingGeometry ring;
  ring.mem_len = 70;
  ring.spare = 8;
  ring.window = 71;
  return NativeRing(ring);
}

// The float32 numbers at a place of the arena.
float* Floats(uint8_t* place) { return reinterpret_cast<float*>(place); }

// The bytes of a layer; a slot begins with the keys of its layers' first heads.
std::vector<uint8_t> LayerOf(NativeArena& arena, int32_t slot, int64_t layer) {
  const uint8_t* const begin = arena.KeyTile(slot, layer, 0, 0);
  return {begin, begin + arena.bytes_per_slot() / arena.shape().layers};
}

std::vector<float> Numbers(int64_t size, float first) {
  std::vector<float> values(size);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST(NativeRing, HasWholePanels) {
  EXPECT_EQ(Ring().capacity(), 128);
  EXPECT_EQ(Ring().mem_len, 70);
  EXPECT_EQ(Ring().spare, 58);
}

TEST(NativeArena, KeysLieByLaneOfTheirPositionValuesInRows) {
  NativeArena arena(Ring(), kShape, 1);
  const std::vector<float> keys = Numbers(15, 100);
  const std::vector<float> values = Numbers(15, 200);
  for (const int64_t position : {0, 63, 64, 127, 128, 1000}) {
    arena.WriteDerived(0, 1, position, keys.data(), values.data());
    for (int64_t head = 0; head < 3; ++head) {
      for (int64_t k = 0; k < 5; ++k) {
        EXPECT_EQ(Floats(arena.KeyTile(
                      0, 1, head, position))[k * kPanel + position % kPanel],
                  100 + head * 5 + k);
        EXPECT_EQ(Floats(arena.Value(0, 1, head, position))[k],
                  200 + head * 5 + k);
      }
    }
  }
}

TEST(NativeArena, RingIndicesReturnAfterTheCapacity) {
  NativeArena arena(Ring(), kShape, 1);
  EXPECT_EQ(arena.Row(0, 0, 5), arena.Row(0, 0, 5 + 128));
  EXPECT_EQ(arena.Row(0, 0, -1), arena.Row(0, 0, 127));
  EXPECT_EQ(arena.KeyTile(0, 0, 1, 3), arena.KeyTile(0, 0, 1, 63));
  EXPECT_NE(arena.KeyTile(0, 0, 1, 3), arena.KeyTile(0, 0, 1, 64));
}

// Whether any page of the slot is in memory.
bool IsResident(NativeArena& arena, int32_t slot) {
  constexpr uintptr_t kPage = 4096;
  const auto begin = reinterpret_cast<uintptr_t>(arena.KeyTile(slot, 0, 0, 0));
  const uintptr_t first = (begin + kPage - 1) / kPage * kPage;
  const uintptr_t bytes = arena.bytes_per_slot() - kPage;
  std::vector<unsigned char> pages((bytes + kPage - 1) / kPage);
  EXPECT_EQ(mincore(reinterpret_cast<void*>(first), bytes, pages.data()), 0);
  return std::any_of(pages.begin(), pages.end(),
                     [](unsigned char page) { return (page & 1) != 0; });
}

// Also where one slot alone is small.
TEST(NativeArena, ASlotTakesMemoryWhenItIsFirstUsed) {
  constexpr NativeShape kSmall = {
      4, 4, 64, 256, NumberFormat::kF32, NumberFormat::kF32};
  NativeArena arena(Ring(), kSmall, 32);
  ASSERT_LT(arena.bytes_per_slot(), 4 << 20);
  const std::vector<float> row = Numbers(256, 0);
  arena.StoreRow(0, 0, 0, row.data());
  EXPECT_TRUE(IsResident(arena, 0));
  EXPECT_FALSE(IsResident(arena, 31));
}

// No two places of a slot overlap: written apart, all are read back.
TEST(NativeArena, RowsKeysAndValuesOfAllLayersLieApart) {
  NativeArena arena(Ring(), kShape, 2);
  const auto mark = [](int64_t slot, int64_t layer, int64_t t) {
    return static_cast<float>(1 + slot * 10000 + layer * 1000 + t);
  };
  for (int32_t slot = 0; slot < 2; ++slot) {
    for (int64_t layer = 0; layer < 2; ++layer) {
      for (int64_t t = 0; t < 128; ++t) {
        const std::vector<float> same(15, mark(slot, layer, t));
        arena.WriteDerived(slot, layer, t, same.data(), same.data());
        std::fill_n(Floats(arena.Row(slot, layer, t)), 11,
                    -mark(slot, layer, t));
      }
    }
  }
  for (int32_t slot = 0; slot < 2; ++slot) {
    for (int64_t layer = 0; layer < 2; ++layer) {
      for (int64_t t = 0; t < 128; ++t) {
        const float expected = mark(slot, layer, t);
        for (int64_t k = 0; k < 11; ++k) {
          ASSERT_EQ(Floats(arena.Row(slot, layer, t))[k], -expected);
        }
        for (int64_t head = 0; head < 3; ++head) {
          ASSERT_EQ(Floats(arena.Value(slot, layer, head, t))[4], expected);
          ASSERT_EQ(
              Floats(arena.KeyTile(slot, layer, head, t))[4 * kPanel + t % 64],
              expected);
        }
      }
    }
  }
}

// A slot whose layer was filled position by position, beside one in which the
// first tile was repeated.
TEST(NativeArena, ARepeatedTileIsEveryPosition) {
  for (const NumberFormat format : {NumberFormat::kF32, NumberFormat::kInt8}) {
    NativeShape shape = kShape;
    shape.memory = shape.derived = format;
    NativeArena arena(Ring(), shape, 2);
    const std::vector<float> row = Numbers(11, 3), keys = Numbers(15, -7),
                             values = Numbers(15, 100);
    const auto fill = [&](int32_t slot, int64_t positions) {
      for (int64_t t = 0; t < positions; ++t) {
        arena.StoreRow(slot, 1, t, row.data());
        arena.WriteDerived(slot, 1, t, keys.data(), values.data());
      }
    };
    fill(0, Ring().capacity());
    fill(1, kPanel);
    arena.RepeatFirstTile(1, 1);
    for (int64_t layer = 0; layer < 2; ++layer) {
      EXPECT_EQ(LayerOf(arena, 0, layer), LayerOf(arena, 1, layer))
          << FormatName(format) << ", layer " << layer;
    }
  }
}

TEST(NativeArena, ACopyOfALayerIsAllOfIt) {
  NativeArena arena(Ring(), kShape, 2);
  const std::vector<float> keys = Numbers(15, 1);
  for (const int64_t layer : {0, 1}) {
    arena.WriteDerived(0, layer, 77, keys.data(), keys.data());
    Floats(arena.Row(0, layer, 77))[10] = 5;
  }
  arena.CopyLayer(0, 1, 1);
  EXPECT_EQ(Floats(arena.Row(1, 0, 77))[10], 0);
  EXPECT_EQ(LayerOf(arena, 1, 1), LayerOf(arena, 0, 1));
  EXPECT_EQ(Floats(arena.Row(1, 1, 77))[10], 5);
  EXPECT_EQ(Floats(arena.Value(1, 1, 2, 77))[4], 15);
  EXPECT_EQ(arena.bytes_per_slot(), NativeSlotBytes(Ring(), kShape));
}

// Numbers whose largest is 127 are whole numbers of themselves.
TEST(NativeArena, InInt8KeysAndValuesLieInQuadsWithTheirScales) {
  NativeShape shape = kShape;
  shape.derived = NumberFormat::kInt8;
  NativeArena arena(Ring(), shape, 1);
  EXPECT_EQ(shape.key_depth(), 8);
  std::vector<float> keys = Numbers(15, -7), values = Numbers(15, 100);
  for (int64_t head = 0; head < 3; ++head) {
    keys[head * 5] = 127;
    values[head * 5 + 4] = 254;  // halves, then
  }
  for (const int64_t position : {0, 63, 64, 130}) {
    arena.WriteDerived(0, 1, position, keys.data(), values.data());
    const int64_t lane = position % kPanel;
    for (int64_t head = 0; head < 3; ++head) {
      const uint8_t* tile = arena.KeyTile(0, 1, head, position);
      const uint8_t* of_values = arena.ValueTile(0, 1, head, position);
      EXPECT_EQ(arena.KeyScales(0, 1, head, position)[lane], 1);
      EXPECT_EQ(arena.ValueScales(0, 1, head, position)[lane], 2);
      for (int64_t k = 0; k < 5; ++k) {
        EXPECT_EQ(
            static_cast<int8_t>(tile[(k / 4 * kPanel + lane) * 4 + k % 4]),
            keys[head * 5 + k]);
        EXPECT_NEAR(
            static_cast<int8_t>(of_values[(lane / 4 * 16 + k) * 4 + lane % 4]),
            values[head * 5 + k] / 2, 0.5);
      }
    }
  }
}

// Positions of a tile share lines: each keeps its own.
TEST(NativeArena, InInt8PositionsLieApart) {
  NativeShape shape = kShape;
  shape.derived = NumberFormat::kInt8;
  shape.memory = NumberFormat::kInt8;
  NativeArena arena(Ring(), shape, 1);
  for (int64_t layer = 0; layer < 2; ++layer) {
    for (int64_t t = 0; t < 128; ++t) {
      const std::vector<float> same(15, static_cast<float>(1 + t + layer));
      arena.WriteDerived(0, layer, t, same.data(), same.data());
      arena.StoreRow(0, layer, t, same.data());
    }
  }
  for (int64_t layer = 0; layer < 2; ++layer) {
    for (int64_t t = 0; t < 128; ++t) {
      const float scale = static_cast<float>(1 + t + layer) / 127;
      ASSERT_EQ(arena.RowFactor(0, layer, t)->scale, scale);
      ASSERT_EQ(arena.RowFactor(0, layer, t)->sum, 11 * 127);
      for (int64_t head = 0; head < 3; ++head) {
        ASSERT_EQ(arena.KeyScales(0, layer, head, t)[t % kPanel], scale);
        ASSERT_EQ(arena.ValueScales(0, layer, head, t)[t % kPanel], scale);
      }
      std::vector<float> row(11);
      arena.LoadRow(0, layer, t, row.data());
      ASSERT_EQ(row, std::vector<float>(11, 127 * scale));
    }
  }
}

TEST(NativeArena, AnInt8RowIsItsNumbersAndItsScale) {
  NativeShape shape = kShape;
  shape.memory = NumberFormat::kInt8;
  NativeArena arena(Ring(), shape, 2);
  const std::vector<float> x = Numbers(11, -5);  // -5 to 5
  arena.StoreRow(0, 0, 9, x.data());
  // What an image has of a row is all of it.
  ASSERT_EQ(arena.image_row_bytes(), 11 + 4);
  std::vector<uint8_t> image(11 + 4);
  arena.WriteImageRow(0, 0, 9, image.data());
  std::fill_n(arena.Row(1, 0, 10), arena.row_step(), uint8_t{99});
  arena.ReadImageRow(1, 0, 10, image.data());
  std::vector<float> moved(11), back(11);
  arena.LoadRow(0, 0, 9, back.data());
  arena.LoadRow(1, 0, 10, moved.data());
  EXPECT_EQ(moved, back);
  for (int64_t k = 0; k < 11; ++k) EXPECT_NEAR(back[k], x[k], 2.6 / 127);
}

// Products of whole numbers read rows in quads and take off 128 times the sum.
TEST(NativeArena, AnInt8RowEndsInWholeQuadsBeforeItsFactor) {
  NativeShape shape = kShape;
  shape.memory = NumberFormat::kInt8;
  NativeArena arena(Ring(), shape, 1);
  const std::vector<float> x = Numbers(11, 1);  // 127 / 11 a step
  arena.StoreRow(0, 1, 3, x.data());
  std::vector<uint8_t> image(arena.image_row_bytes());
  arena.WriteImageRow(0, 1, 3, image.data());
  arena.ReadImageRow(0, 1, 4, image.data());
  int32_t sum = 0;
  for (const float number : x) sum += std::lround(number * 127 / 11);
  for (const int64_t t : {3, 4}) {
    EXPECT_EQ(arena.Row(0, 1, t)[11], 0);
    EXPECT_EQ(arena.RowFactor(0, 1, t)->sum, sum);
    EXPECT_EQ(arena.RowFactor(0, 1, t)->scale, 11.0f / 127);
  }
  EXPECT_EQ(arena.RowFactor(0, 1, 3) + arena.factor_step(),
            arena.RowFactor(0, 1, 4));
}

// Half-width numbers: exact ones come back, the bytes are half as many.
TEST(NativeArena, KeepsRowsAndDerivedNumbersInTheirFormats) {
  NativeShape shape = kShape;
  shape.memory = NumberFormat::kBF16;
  shape.derived = NumberFormat::kF16;
  NativeArena arena(Ring(), shape, 1);
  EXPECT_EQ(arena.image_row_bytes(), 22);
  EXPECT_LT(arena.bytes_per_slot(), NativeSlotBytes(Ring(), kShape) * 51 / 100);
  const std::vector<float> numbers = Numbers(15, 1);
  arena.WriteDerived(0, 1, 70, numbers.data(), numbers.data());
  float value[5];
  WidenRow(arena.Value(0, 1, 2, 70), NumberFormat::kF16, 5, value);
  EXPECT_EQ(value[4], 15);
  float key;
  WidenRow(arena.KeyTile(0, 1, 2, 70) + (4 * kPanel + 6) * 2,
           NumberFormat::kF16, 1, &key);
  EXPECT_EQ(key, 15);
}

}  // namespace
}  // namespace txl
