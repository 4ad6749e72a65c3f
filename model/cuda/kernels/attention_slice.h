#pragma once

// Where the tensor core kernel of attention keeps rows: each warp its own
// columns of them, in shared memory, so that it needs no other warp to copy
// them, to multiply with them and to let go of them.

#include <cmath>
#include <cstdint>

#include "model/cuda/device/kernel.h"
#include "model/cuda/device/matrix.h"
#include "model/cuda/kernels/attention.h"
#include "model/cuda/kernels/group.h"
#include "model/cuda/kernels/rows.h"

namespace txl::cuda {

// What the attention kernels have in common: a split's tiles, the softmax that
// goes along with them, and how parts lie in memory.

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

// kColumns columns of kRingTile rows of 16-bit numbers, row by row, in pieces
// of 16 bytes. A row's pieces change places among each other, so that the same
// piece of eight rows lies in eight different banks.
template <typename M, int kColumns>
struct Slice {
  static constexpr int kRowBytes = kColumns * static_cast<int>(sizeof(M));
  static constexpr int kPieces = kRowBytes / 16;  // of a row
  static constexpr int kBytes = kRingTile * kRowBytes;

  unsigned char* at = nullptr;  // aligned to 128 bytes

  // What begins at a multiple of 16 rows lies like the whole.
  TXL_DEVICE Slice From(int row) const { return {at + row * kRowBytes}; }

  TXL_DEVICE static int Offset(int row, int piece) {
    const int turn = kPieces >= 8 ? row % 8 : row * kPieces / 8 % kPieces;
    return row * kRowBytes + (piece ^ turn) * 16;
  }
  // The piece that lies `rows` and `pieces` behind the one at `offset`, where
  // rows is a multiple of 8, and pieces one of 2 and that one's number 0 or 1.
  TXL_DEVICE const unsigned char* Behind(int offset, int rows,
                                         int pieces) const {
    const int bytes = pieces * 16;
    return at + (offset ^ (bytes % 128)) +
           (bytes / 128 * 128 + rows * kRowBytes);
  }

  // Matrices of 16 rows and 16 columns, as LoadMatrices gives them: rows
  // `row` to row + 15 along c's columns, columns 16 k to 16 k + 15 summed over.
  TXL_DEVICE void LoadRows(uint32_t (&out)[4], int row, int k) const {
    const int lane = Lane();
    const int offset = Offset(lane % 8 + lane / 16 * 8, lane / 8 % 2);
    LoadMatrices(out, Behind(offset, row, 2 * k));
  }
  // Loads a [16, 16] as the left factor.
  TXL_DEVICE void LoadLeft(uint32_t (&out)[4], int k) const {
    const int lane = Lane();
    LoadMatrices(out, Behind(Offset(lane % 16, lane / 16), 0, 2 * k));
  }
  // Columns 16 k to 16 k + 15 along c's columns, 16 rows summed over.
  TXL_DEVICE void LoadColumns(uint32_t (&out)[4], int row, int k) const {
    const int lane = Lane();
    LoadMatricesTurned(out, Behind(Offset(lane % 16, lane / 16), row, 2 * k));
  }

  // The warp copies kRows rows, `stride` numbers apart; those that `view` lacks
  // and columns from stride on become zeros. Rows behind view.high need not be
  // memory.
  template <int kRows>
  TXL_DEVICE void Copy(const M* rows, int64_t stride, TileView view) const {
    constexpr int kAtOnce = kWarp / kPieces;
    const int piece = Lane() % kPieces;
    const int column = WarpOfBlock() * kColumns + piece * 8;
    if (column < stride) {
      rows += column;
    } else {
      view.low = kRows;
    }
    const int pitch = static_cast<int>(stride);
    TXL_UNROLL_BY_4
    for (int i = 0; i < kRows; i += kAtOnce) {
      const int row = i + Lane() / kPieces;
      const int there = row < view.high ? row : view.high;
      CopyLater16(at + Offset(row, piece), rows + there * pitch, view.Has(row));
    }
  }

  // Fetches everything at once, for what is needed first.
  template <int kRows>
  TXL_DEVICE void Fetch(const M* rows, int64_t stride, TileView view) const {
    constexpr int kAtOnce = kWarp / kPieces;
    using Piece = Group<uint32_t, 4>;
    const int piece = Lane() % kPieces;
    const int column = WarpOfBlock() * kColumns + piece * 8;
    Piece pieces[kRows / kAtOnce];
    TXL_UNROLL
    for (int i = 0; i < kRows / kAtOnce; ++i) {
      const int row = i * kAtOnce + Lane() / kPieces;
      if (column >= stride || !view.Has(row)) continue;
      pieces[i] = *reinterpret_cast<const Piece*>(rows + row * stride + column);
    }
    TXL_UNROLL
    for (int i = 0; i < kRows / kAtOnce; ++i) {
      const int row = i * kAtOnce + Lane() / kPieces;
      *reinterpret_cast<Piece*>(at + Offset(row, piece)) = pieces[i];
    }
  }
};

// A split's tiles on their way into shared memory, in `stages` places in turn.
template <typename M, int kColumns>
struct TilePipeline {
  static constexpr int kMostStages = 6;

  const Rings<M>* rings = nullptr;
  int waiting = 0;          // tiles that were not copied yet
  VisibleRange visible;     // from the first of them
  const M* ring = nullptr;  // the slot's
  int row = 0;              // of the ring: the first one of the next tile
  unsigned char* memory = nullptr;  // the warp's: [stages] slices
  int stages = 0;
  int stage = 0;  // the one that comes next, to be used and to be filled

  TXL_DEVICE Slice<M, kColumns> Place(int index) const {
    return {memory + index * Slice<M, kColumns>::kBytes};
  }

  TXL_DEVICE void CopyNext(int index) {
    if (waiting > 0) {
      Place(index).template Copy<kRingTile>(ring + row * rings->stride,
                                            rings->stride, ViewOf(visible));
      row += kRingTile;
      if (row == rings->capacity) row = 0;
      visible.newest -= kRingTile;
      --waiting;
    }
    CloseCopies();
  }

  // Waits for the oldest group of `stages` that are on their way.
  TXL_DEVICE void FinishOldest() const {
    switch (stages) {
      case 2:
        FinishCopies<1>();
        break;
      case 3:
        FinishCopies<2>();
        break;
      case 4:
        FinishCopies<3>();
        break;
      case 5:
        FinishCopies<4>();
        break;
      default:
        FinishCopies<kMostStages - 1>();
    }
    WarpBarrier();
  }

  // The oldest tile that was not given back.
  TXL_DEVICE Slice<M, kColumns> Wait() const {
    FinishOldest();
    return Place(stage);
  }
  // Gives it back, to be filled again.
  TXL_DEVICE void Release() {
    WarpBarrier();
    CopyNext(stage);
    stage = stage + 1 == stages ? 0 : stage + 1;
  }
};

// Which rows of a step a block of the tensor core kernel takes together, so
// that it reads the stored rows that both of them see once: a prompt's rows,
// two by two.

inline constexpr int kPairedRows = 2;

// Whether row r of the step and the one behind it are a pair: of one slot, at
// positions 2k and 2k + 1, which have one tile.
TXL_ANYWHERE bool ArePaired(const StepRows& rows, int r) {
  return r >= 0 && r + 1 < rows.count && rows.slot[r] >= 0 &&
         rows.slot[r + 1] == rows.slot[r] && rows.position[r] % 2 == 0 &&
         rows.position[r + 1] == rows.position[r] + 1;
}

// How many rows the block of row r takes, from r on: 0 where there is no such
// row, or the block before has it. `in_pairs`: whether any block takes two.
TXL_ANYWHERE int RowsFrom(const StepRows& rows, int r, bool in_pairs) {
  if (rows.slot[r] < 0) return 0;
  if (!in_pairs) return 1;
  if (ArePaired(rows, r - 1)) return 0;
  return ArePaired(rows, r) ? kPairedRows : 1;
}

}  // namespace txl::cuda
