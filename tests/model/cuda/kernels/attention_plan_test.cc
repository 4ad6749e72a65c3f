#include <gtest/gtest.h>

#include <algorithm>

#include "model/cuda/kernels/attention.h"

namespace txl::cuda {
namespace {

TEST(AttentionPlanTest, TilesAreTheMostThatAWindowMeets) {
  for (int64_t window = 1; window < 200; ++window) {
    int most = 0;
    for (int64_t oldest = 0; oldest < kRingTile; ++oldest) {
      const int64_t newest = oldest + window - 1;
      most = std::max(most, static_cast<int>(newest / kRingTile + 1));
    }
    EXPECT_EQ(AttentionTiles(window), most) << window;
  }
}

TEST(AttentionPlanTest, FewRowsAreSplitUntilTheDeviceIsFull) {
  // 51 tiles, 132 processors: 4 x 32 blocks of 13 tiles are one wave.
  EXPECT_EQ(AttentionSplits(32, 16, 1601, 132), 4);
  EXPECT_EQ(AttentionSplits(132, 16, 1601, 132), 1);
  EXPECT_GT(AttentionSplits(1, 16, 1601, 132), 16);
}

TEST(AttentionPlanTest, MoreHeadsOrRowsNeedNoMoreSplits) {
  for (int rows = 1; rows < 100; ++rows) {
    EXPECT_EQ(AttentionSplits(2 * rows, 16, 1601, 132),
              AttentionSplits(rows, 32, 1601, 132));
    EXPECT_EQ(AttentionSplits(rows, 1, 1601, 132),
              AttentionSplits(rows, 16, 1601, 132));
  }
}

TEST(AttentionPlanTest, SplitsAreAtMostTiles) {
  for (const int64_t window : {1, 2, 33, 640, 3801}) {
    for (int rows = 1; rows < 300; rows += 7) {
      const int splits = AttentionSplits(rows, 8, window, 132);
      EXPECT_GE(splits, 1);
      EXPECT_LE(splits, AttentionTiles(window));
    }
  }
}

TEST(AttentionPlanTest, TensorCoresTakeRowsThatSharedMemoryHoldsTwoTilesOf) {
  constexpr size_t kA100 = 163 << 10;
  constexpr size_t kH200 = 227 << 10;
  for (int64_t stride = 64; stride <= 1024; stride += 64) {
    EXPECT_TRUE(HasMatrixAttention(stride, kA100));
    EXPECT_TRUE(HasMatrixAttention(stride, kH200));
  }
  EXPECT_FALSE(HasMatrixAttention(1088, kH200));
  EXPECT_FALSE(HasMatrixAttention(1024, 128 << 10));
  EXPECT_FALSE(HasMatrixAttention(64, 16 << 10));
}

}  // namespace
}  // namespace txl::cuda
