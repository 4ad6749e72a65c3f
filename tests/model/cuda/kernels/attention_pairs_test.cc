#include <gtest/gtest.h>

#include <vector>

#include "model/cuda/kernels/attention_slice.h"

namespace txl::cuda {
namespace {

std::vector<int> BlocksOf(const std::vector<int32_t>& slots,
                          const std::vector<int64_t>& positions,
                          bool in_pairs = true) {
  const StepRows rows = {static_cast<int>(slots.size()), slots.data(),
                         positions.data()};
  std::vector<int> taken;
  for (int r = 0; r < rows.count; ++r)
    taken.push_back(RowsFrom(rows, r, in_pairs));
  return taken;
}

using Blocks = std::vector<int>;

TEST(AttentionPairsTest, DecodingSessionsGoAlone) {
  EXPECT_EQ(BlocksOf({3, 1, 0}, {6, 7, 8}), (Blocks{1, 1, 1}));
}

TEST(AttentionPairsTest, APromptGoesTwoByTwoFromItsFirstEvenPositionOn) {
  EXPECT_EQ(BlocksOf({4, 4, 4, 4}, {6, 7, 8, 9}), (Blocks{2, 0, 2, 0}));
  EXPECT_EQ(BlocksOf({4, 4, 4, 4}, {7, 8, 9, 10}), (Blocks{1, 2, 0, 1}));
  EXPECT_EQ(BlocksOf({4, 4, 4}, {-3, -2, -1}), (Blocks{1, 2, 0}));
}

TEST(AttentionPairsTest, WithoutPairsEveryRowGoesAlone) {
  EXPECT_EQ(BlocksOf({4, 4, -1, 4}, {6, 7, 8, 9}, false), (Blocks{1, 1, 0, 1}));
}

TEST(AttentionPairsTest, WhatDoesNotFollowIsNoPair) {
  EXPECT_EQ(BlocksOf({4, 4}, {6, 8}), (Blocks{1, 1}));
  EXPECT_EQ(BlocksOf({4, 4}, {7, 6}), (Blocks{1, 1}));
  EXPECT_EQ(BlocksOf({4, 5}, {6, 7}), (Blocks{1, 1}));
}

TEST(AttentionPairsTest, RowsWithoutSlotHaveNoBlock) {
  EXPECT_EQ(BlocksOf({-1, -1, 2, -1}, {6, 7, 6, 7}), (Blocks{0, 0, 1, 0}));
}

// Every row of a step is some block's, and no row is two blocks'.
TEST(AttentionPairsTest, EveryRowIsTakenOnce) {
  for (int first = -9; first < 9; ++first) {
    std::vector<int32_t> slots;
    std::vector<int64_t> positions;
    for (int r = 0; r < 24; ++r) {
      slots.push_back(r / 7);
      positions.push_back(first + r % 7 * (r < 14 ? 1 : 2));
    }
    const std::vector<int> taken = BlocksOf(slots, positions);
    int next = 0;
    for (int r = 0; r < 24; ++r) {
      if (taken[r] == 0) continue;
      EXPECT_EQ(r, next);
      next = r + taken[r];
    }
    EXPECT_EQ(next, 24);
  }
}

}  // namespace
}  // namespace txl::cuda
