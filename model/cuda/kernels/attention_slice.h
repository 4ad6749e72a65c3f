#pragma once

// Where the tensor core kernel of attention keeps rows: each warp its own
// columns of them, in shared memory, so that it needs no other warp to copy
// them, to multiply with them and to let go of them.

#include <cstdint>

#include "model/cuda/device/matrix.h"
#include "model/cuda/kernels/attention_range.h"
#include "model/cuda/kernels/group.h"

namespace txl::cuda {

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

}  // namespace txl::cuda
