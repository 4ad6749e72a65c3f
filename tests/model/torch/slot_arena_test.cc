#include "model/torch/slot_arena.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <vector>

namespace txl {
namespace {

// Two layers of width 3, M = 4, S = 8: twelve ring rows.
SlotArena MakeArena(int64_t slots) {
  RingGeometry ring;
  ring.mem_len = 4;
  ring.spare = 8;
  ring.window = 5;
  return SlotArena(ring, slots, {at::zeros({3}), at::full({3}, 0.5)});
}

// Row of position t: t + 100 * layer in every column.
at::Tensor RowsFrom(int64_t begin, int64_t end, int64_t layer) {
  return (at::arange(begin, end, at::kFloat) + 100 * layer)
      .unsqueeze(1)
      .expand({end - begin, 3});
}

void WriteRange(SlotArena& arena, int32_t slot, int64_t begin, int64_t end) {
  for (int64_t layer = 0; layer < 2; ++layer) {
    arena.Write(layer, slot, begin, RowsFrom(begin, end, layer));
  }
}

at::Tensor Read(const SlotArena& arena, int32_t slot, int64_t begin,
                int64_t end) {
  at::Tensor rows = at::empty({2, end - begin, 3});
  arena.Read(slot, begin, rows);
  return rows;
}

TEST(SlotArenaTest, TheRowOfAPositionIsAtItsIndexModuloCapacity) {
  SlotArena arena = MakeArena(1);
  WriteRange(arena, 0, 10, 14);  // wraps: indices 10, 11, 0, 1
  const at::Tensor rows = arena.Rows(1, 0);
  EXPECT_EQ(rows[10][0].item<float>(), 110);
  EXPECT_EQ(rows[11][2].item<float>(), 111);
  EXPECT_EQ(rows[0][1].item<float>(), 112);
  EXPECT_EQ(rows[1][0].item<float>(), 113);
}

TEST(SlotArenaTest, ReadingGivesPositionsInOrderAcrossTheWrap) {
  SlotArena arena = MakeArena(2);
  WriteRange(arena, 1, 8, 15);
  const at::Tensor rows = Read(arena, 1, 9, 15);
  ASSERT_EQ(rows.sizes(), at::IntArrayRef({2, 6, 3}));
  EXPECT_TRUE(at::equal(rows[0], RowsFrom(9, 15, 0)));
  EXPECT_TRUE(at::equal(rows[1], RowsFrom(9, 15, 1)));
}

TEST(SlotArenaTest, WhatWasReadCanBeWrittenBackElsewhere) {
  SlotArena arena = MakeArena(2);
  WriteRange(arena, 0, 20, 24);
  const at::Tensor rows = Read(arena, 0, 20, 24);
  for (const int64_t layer : {0, 1}) arena.Write(layer, 1, 20, rows[layer]);
  EXPECT_TRUE(at::equal(Read(arena, 1, 20, 24), rows));
}

TEST(SlotArenaTest, NegativePositionsHaveTheirPlace) {
  SlotArena arena = MakeArena(1);
  WriteRange(arena, 0, -4, 0);
  EXPECT_EQ(arena.Rows(0, 0)[11][0].item<float>(), -1);
  EXPECT_TRUE(at::equal(Read(arena, 0, -4, 0)[0], RowsFrom(-4, 0, 0)));
}

TEST(SlotArenaTest, SlotsDoNotTouchEachOther) {
  SlotArena arena = MakeArena(3);
  for (int32_t slot = 0; slot < 3; ++slot) arena.Clear(slot);
  WriteRange(arena, 1, 0, 12);
  for (const int32_t slot : {0, 2}) {
    EXPECT_EQ(arena.Rows(0, slot).abs().sum().item<float>(), 0);
    EXPECT_TRUE(at::equal(arena.Rows(1, slot), at::full({12, 3}, 0.5)));
  }
}

TEST(SlotArenaTest, ClearingFillsEveryRowWithTheLayersStartRow) {
  SlotArena arena = MakeArena(1);
  WriteRange(arena, 0, 0, 12);
  arena.Clear(0);
  EXPECT_TRUE(at::equal(arena.Rows(0, 0), at::zeros({12, 3})));
  EXPECT_TRUE(at::equal(arena.Rows(1, 0), at::full({12, 3}, 0.5)));
}

TEST(SlotArenaTest, ASlotThatWasWrittenInPartsIsClearedWhole) {
  SlotArena arena = MakeArena(2);
  for (const int32_t slot : {0, 1}) arena.Clear(slot);
  WriteRange(arena, 0, 3, 5);
  WriteRange(arena, 1, 10, 13);  // wraps
  arena.Clear(0);
  arena.Clear(1);
  for (const int32_t slot : {0, 1}) {
    EXPECT_TRUE(at::equal(arena.Rows(0, slot), at::zeros({12, 3})));
    EXPECT_TRUE(at::equal(arena.Rows(1, slot), at::full({12, 3}, 0.5)));
  }
}

TEST(SlotArenaTest, ZerosAreClearedToo) {
  SlotArena arena = MakeArena(1);
  arena.Clear(0);
  arena.Erase(0, 7, 9);
  arena.Clear(0);
  EXPECT_TRUE(at::equal(arena.Rows(1, 0), at::full({12, 3}, 0.5)));
}

TEST(SlotArenaTest, ErasingZeroesTheNamedPositionsOnly) {
  SlotArena arena = MakeArena(1);
  WriteRange(arena, 0, 6, 18);
  arena.Erase(0, 11, 14);
  EXPECT_EQ(Read(arena, 0, 11, 14).abs().sum().item<float>(), 0);
  EXPECT_TRUE(at::equal(Read(arena, 0, 6, 11)[1], RowsFrom(6, 11, 1)));
  EXPECT_TRUE(at::equal(Read(arena, 0, 14, 18)[1], RowsFrom(14, 18, 1)));
}

TEST(SlotArenaTest, CopyingTakesEveryRow) {
  SlotArena arena = MakeArena(2);
  WriteRange(arena, 0, 3, 15);
  arena.Copy(0, 1);
  WriteRange(arena, 0, 15, 20);  // the copy has its own storage
  EXPECT_TRUE(at::equal(Read(arena, 1, 3, 15)[0], RowsFrom(3, 15, 0)));
}

TEST(SlotArenaTest, ACopyHasNoRowOfWhatWasThere) {
  SlotArena arena = MakeArena(2);
  for (const int32_t slot : {0, 1}) arena.Clear(slot);
  WriteRange(arena, 0, 0, 2);
  WriteRange(arena, 1, 0, 9);
  arena.Copy(0, 1);
  EXPECT_TRUE(at::equal(arena.Rows(1, 1), arena.Rows(1, 0)));
  arena.Clear(1);
  EXPECT_TRUE(at::equal(arena.Rows(1, 1), at::full({12, 3}, 0.5)));
}

}  // namespace
}  // namespace txl
