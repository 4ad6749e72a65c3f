#pragma once

// Tiles of rows of 64 16-bit numbers (kLinearUnit) in shared memory, and
// products of them by a warp; for .cu files only.
//
// A tile's row has 8 pieces of 16 bytes; piece p of row r lies at p ^ (r % 8),
// so that neither copies nor fragments meet a bank twice.

#include "model/cuda/device/matrix.h"
#include "model/cuda/kernels/linear.h"
#include "model/cuda/kernels/linear_epilogue.h"

namespace txl::cuda {

inline constexpr int kTileRowBytes = kLinearUnit * 2;
inline constexpr int kTilePieces = kTileRowBytes / 16;

TXL_DEVICE int TileOffset(int row, int piece) {
  return row * kTileRowBytes + ((piece ^ (row % 8)) * 16);
}

// Rows of a matrix in global memory, the first one at `from`.
template <typename T>
struct TileSource {
  const T* from;
  int stride;  // numbers between rows; those of a tile fit into an int
  int rows;    // that there are, >= 1; a tile's others become zeros
};

// Begins the copies of a tile; `thread` of kThreads.
template <int kRows, int kThreads, typename T>
TXL_DEVICE void CopyTile(unsigned char* tile, const TileSource<T>& source,
                         int thread) {
  constexpr int kRowsAtOnce = kThreads / kTilePieces;
  static_assert(kRows % kRowsAtOnce == 0);
  const int piece = thread % kTilePieces;
  const T* from = source.from + piece * (16 / sizeof(T));
  for (int i = 0; i < kRows / kRowsAtOnce; ++i) {
    const int row = i * kRowsAtOnce + thread / kTilePieces;
    const bool valid = row < source.rows;
    CopyLater16(tile + TileOffset(row, piece),
                from + (valid ? row : 0) * source.stride, valid);
  }
}

// 16 rows from `row` on, numbers 16 step .. 16 step + 15: `a` of MultiplyAdd.
TXL_DEVICE void LoadLeft(uint32_t (&a)[4], const unsigned char* tile, int row,
                         int step) {
  const int lane = Lane();
  LoadMatrices(a, tile + TileOffset(row + lane % 16, step * 2 + lane / 16));
}
// Loads two `b` of MultiplyAdd: rows are its columns.
TXL_DEVICE void LoadRight(uint32_t (&first)[2], uint32_t (&second)[2],
                          const unsigned char* tile, int row, int step) {
  const int lane = Lane();
  uint32_t both[4];
  LoadMatrices(both, tile + TileOffset(row + lane / 16 * 8 + lane % 8,
                                       step * 2 + lane / 8 % 2));
  first[0] = both[0];
  first[1] = both[1];
  second[0] = both[2];
  second[1] = both[3];
}

inline constexpr int kWarpOutputs = 32;
inline constexpr int kN = kWarpOutputs / 8;

// Sums of a warp: 16 kM rows times kWarpOutputs.
template <int kM>
struct WarpSums {
  float c[kM][kN][4];
};

// sums += rows of x from x_row on, times rows of w from w_row on.
template <typename T, int kM>
TXL_DEVICE void MultiplyTiles(WarpSums<kM>& sums, const unsigned char* x,
                              int x_row, const unsigned char* w, int w_row) {
  for (int step = 0; step < kLinearUnit / 16; ++step) {
    uint32_t a[kM][4];
    uint32_t b[kN][2];
    for (int i = 0; i < kM; ++i) LoadLeft(a[i], x, x_row + 16 * i, step);
    for (int j = 0; j < kN; j += 2) {
      LoadRight(b[j], b[j + 1], w, w_row + 8 * j, step);
    }
    for (int i = 0; i < kM; ++i) {
      for (int j = 0; j < kN; ++j) MultiplyAdd<T>(sums.c[i][j], a[i], b[j]);
    }
  }
}

// Sums on their way through shared memory: of every warp 16 kM rows, which lie
// so that neither fragments nor rows meet a bank twice.
inline constexpr int kSumsPitch = kWarpOutputs + 8;
template <int kM>
inline constexpr int kWarpSumsBytes = 16 * kM* kSumsPitch * sizeof(float);

// Writes every warp's sums to shared memory, in place of whatever was there.
template <int kM>
TXL_DEVICE void ShareSums(const WarpSums<kM>& sums) {
  float* mine = reinterpret_cast<float*>(SharedMemory() +
                                         WarpOfBlock() * kWarpSumsBytes<kM>);
  const int row = Lane() / 4;
  const int column = Lane() % 4 * 2;
  BlockBarrier();  // the stages are no longer read
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      const float(&c)[4] = sums.c[i][j];
      float* to = mine + (16 * i + row) * kSumsPitch + 8 * j + column;
      StoreGroup(to, Group<float, 2>{{c[0], c[1]}});
      StoreGroup(to + 8 * kSumsPitch, Group<float, 2>{{c[2], c[3]}});
    }
  }
  BlockBarrier();
}

struct SharedSums {
  RowSpan span;  // rows that are stored
  int split;
  int sharing;  // warps that have sums of the same outputs
};

// Adds what `sharing` neighbouring warps shared, in their order, and stores it;
// each of them does a part. `first` is the place of the first row and output.
template <typename T, int kM>
TXL_DEVICE void StoreSharedSums(const LinearArgs<T>& args,
                                const SharedSums& shared,
                                const SumPlace& first) {
  const int sharing = shared.sharing;
  constexpr int kEach = 4;
  constexpr int kRowThreads = kWarpOutputs / kEach;
  const int warp = WarpOfBlock() % sharing;
  const float* sums = reinterpret_cast<const float*>(
      SharedMemory() + (WarpOfBlock() - warp) * kWarpSumsBytes<kM>);
  for (int i = warp * kWarp + Lane(); i < 16 * kM * kRowThreads;
       i += sharing * kWarp) {
    const int r = i / kRowThreads;
    const int n = i % kRowThreads * kEach;
    if (!shared.span.Contains(first.r + r)) continue;
    const float* from = sums + r * kSumsPitch + n;
    Group<float, kEach> sum = LoadGroup<kEach>(from);
    for (int other = 1; other < sharing; ++other) {
      from += 16 * kM * kSumsPitch;
      Add(sum, LoadGroup<kEach>(from));
    }
    StoreSums(args, shared.split, {first.b, first.r + r, first.n + n}, sum);
  }
}

}  // namespace txl::cuda
