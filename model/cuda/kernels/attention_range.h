#pragma once

// What the attention kernels have in common: a split's tiles, the softmax that
// goes along with them, and how parts lie in memory.

#include <cmath>
#include <cstdint>

#include "model/cuda/device/kernel.h"
#include "model/cuda/kernels/attention.h"

namespace txl::cuda {

// Scores are kept in units of ln 2, because 2^x is what the device computes.
inline constexpr float kLog2E = 1.44269504088896340736f;

// The positions that a row sees, or a block's rows see together, counted from
// the first position of a tile.
struct VisibleRange {
  int newest = 0;  // the row's own position
  int count = 0;
};

// What is seen of a split's tiles.
struct AttentionRange {
  int64_t first = 0;  // position, of the first tile
  int tiles = 0;
  VisibleRange visible;  // from there
};

TXL_DEVICE int64_t TileOf(int64_t position) {
  return (position >= 0 ? position : position - (kRingTile - 1)) / kRingTile;
}

// How many positions are visible at `position`.
template <typename M>
TXL_DEVICE int VisibleCount(const Rings<M>& rings, int64_t position) {
  const int64_t there = position - rings.first_position + 1;
  return static_cast<int>(there < rings.window ? there : rings.window);
}

// What the row at `position` sees, counted from `first`.
template <typename M>
TXL_DEVICE VisibleRange VisibleTo(const Rings<M>& rings, int64_t position,
                                  int64_t first) {
  return {static_cast<int>(position - first), VisibleCount(rings, position)};
}

// The part of a split in what `rows` rows from `position` on see. Every split
// gets as many of their tiles as any other, or one more.
template <typename M>
TXL_DEVICE AttentionRange RangeOf(const Rings<M>& rings, int64_t position,
                                  int rows, int split, int splits) {
  const int64_t newest = position + rows - 1;
  const int count = VisibleCount(rings, position) + rows - 1;
  const int64_t oldest_tile = TileOf(newest - count + 1);
  const int tiles = static_cast<int>(TileOf(newest) - oldest_tile + 1);
  const int each = tiles / splits;
  const int longer = tiles - each * splits;  // splits that have one more
  const int before = each * split + (split < longer ? split : longer);
  AttentionRange range;
  range.first = (oldest_tile + before) * kRingTile;
  range.tiles = each + (split < longer ? 1 : 0);
  range.visible = {static_cast<int>(newest - range.first), count};
  return range;
}

// The visible positions of a tile, counted from its first one: low..high; none
// where low > high.
struct TileView {
  int low = 0;
  int high = 0;

  TXL_DEVICE bool Has(int position) const {
    return position >= low && position <= high;
  }
};
TXL_DEVICE TileView ViewOf(const VisibleRange& visible) {
  const int oldest = visible.newest - visible.count + 1;
  TileView view;
  view.low = oldest > 0 ? oldest : 0;
  view.high = visible.newest < kRingTile ? visible.newest : kRingTile - 1;
  return view;
}

// `scores` are those of a row and head.
TXL_DEVICE float PositionScore(const float* scores, int distance,
                               int distances) {
  if (distance < 0) distance = 0;  // not visible, but there is no such score
  return scores[distance < distances ? distance : distances - 1];
}

// One head's softmax in a warp, tile by tile; a lane has one position of each.
struct RunningSoftmax {
  float maximum = -INFINITY;  // the same in every lane
  float sum = 0;              // of the lane's own weights

  // Takes in a tile's highest score; -inf where nothing of it is visible, which
  // may be the first tile of a pair's later row. What was summed up before is
  // to be multiplied with the result.
  TXL_DEVICE float Raise(float highest) {
    if (!(maximum < highest)) return 1;
    const float factor = exp2f(maximum - highest);
    maximum = highest;
    sum *= factor;
    return factor;
  }
  TXL_DEVICE float Weight(float score) const {
    return score == -INFINITY ? 0 : exp2f(score - maximum);
  }
};

// Index of a part's maximum and sum; times stride, of its first number.
TXL_DEVICE int64_t PartIndex(int row, int split, int splits, int head,
                             int heads) {
  return (static_cast<int64_t>(row) * splits + split) * heads + head;
}

// A split without tiles: heads [begin, end) of it. All threads of the block.
template <typename Q, typename M>
TXL_DEVICE void WriteNoPart(const AttentionArgs<Q, M>& args, int row, int split,
                            int begin, int end) {
  const int head = begin + Thread();
  if (head >= end) return;
  const int64_t part = PartIndex(row, split, args.splits, head, args.heads);
  args.maxima[part] = -INFINITY;
  args.sums[part] = 0;
}

}  // namespace txl::cuda
