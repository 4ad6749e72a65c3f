#pragma once

// What the tensor core kernel of attention is made of: the columns that a warp
// multiplies, the softmax of the heads that it weighs, and what warps tell each
// other in shared memory between the two.

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "model/cuda/device/matrix.h"
#include "model/cuda/kernels/attention_slice.h"
#include "model/cuda/kernels/group.h"

namespace txl::cuda::matrix_attention {

inline constexpr int kWarps = 8;
inline constexpr int kThreads = kWarps * kWarp;
inline constexpr int kHeads = 16;                  // of a block
inline constexpr int kOwnHeads = kHeads / kWarps;  // whose softmax a warp does
inline constexpr int kWeightStride = kRingTile + 8;  // eight rows, eight banks
static_assert(kRingTile == kWarp, "a lane has a position");

// What the warps tell each other about a row of the block.
template <typename M>
struct alignas(128) Exchange {
  float scores[kWarps][kHeads][kRingTile];  // of each warp's columns
  M weights[kHeads][kWeightStride];
  float factors[kHeads];  // of what was summed up before
  float totals[kHeads];
};
template <typename M>
TXL_DEVICE Exchange<M>& SharedExchange(int r) {
  return reinterpret_cast<Exchange<M>*>(SharedMemory())[r];
}
inline constexpr size_t kExchangeBytes = kPairedRows * sizeof(Exchange<Bf16>);

// Where the score of a position lies in its row: four heads of a fragment, four
// different groups of banks.
TXL_DEVICE int ScorePlace(int head, int position) {
  return position ^ (head % 4 * 8);
}

// The block's rows, from this one on, and their heads.
struct Rows {
  int row;
  int head;
  int heads;
};
// Row r's part of the block's split.
template <typename M>
TXL_DEVICE int64_t FirstPart(const AttentionArgs<M, M>& args, const Rows& rows,
                             int r) {
  return PartIndex(rows.row + r, BlockX(), args.splits, rows.head, args.heads);
}

// A warp's columns of a row's queries: fragments of them stay in registers.
template <typename M, int kColumns>
struct QueriesInRegisters {
  static constexpr bool kStay = false;  // in shared memory
  uint32_t fragments[kColumns / 16][4];

  TXL_DEVICE explicit QueriesInRegisters(const Slice<M, kColumns>& queries) {
    TXL_UNROLL
    for (int k = 0; k < kColumns / 16; ++k) queries.LoadLeft(fragments[k], k);
  }
  TXL_DEVICE void Load(uint32_t (&out)[4], int /*row*/, int k) const {
    TXL_UNROLL
    for (int i = 0; i < 4; ++i) out[i] = fragments[k][i];
  }
};

// Scores of two rows, for which sums leave no registers.
template <typename M, int kColumns>
struct QueriesInSharedMemory {
  static constexpr bool kStay = true;
  Slice<M, kColumns> queries;  // kHeads of the first row, and of the second

  TXL_DEVICE void Load(uint32_t (&out)[4], int row, int k) const {
    queries.From(row * kHeads).LoadLeft(out, k);
  }
};

// Scores of a tile as far as a warp's columns of queries and rows make them.
template <int kRows, typename Queries, typename M, int kColumns>
TXL_DEVICE void Score(const Queries& queries, const Slice<M, kColumns>& tile) {
  float scores[kRows][kRingTile / 8][4] = {};
  TXL_UNROLL
  for (int k = 0; k < kColumns / 16; ++k) {
    uint32_t left[kRows][4];
    TXL_UNROLL
    for (int r = 0; r < kRows; ++r) queries.Load(left[r], r, k);
    TXL_UNROLL
    for (int n = 0; n < kRingTile / 8; n += 2) {
      uint32_t rows[4];
      tile.LoadRows(rows, 8 * n, k);
      TXL_UNROLL
      for (int r = 0; r < kRows; ++r) {
        MultiplyAdd<M>(scores[r][n], left[r], {rows[0], rows[1]});
        MultiplyAdd<M>(scores[r][n + 1], left[r], {rows[2], rows[3]});
      }
    }
  }
  const int g = Lane() / 4;
  const int t = Lane() % 4;
  TXL_UNROLL
  for (int r = 0; r < kRows; ++r) {
    auto& to = SharedExchange<M>(r).scores[WarpOfBlock()];
    TXL_UNROLL
    for (int n = 0; n < kRingTile / 8; ++n) {
      const int place = ScorePlace(g, 8 * n + 2 * t);
      const Group<float, 2> upper = {{scores[r][n][0], scores[r][n][1]}};
      const Group<float, 2> lower = {{scores[r][n][2], scores[r][n][3]}};
      StoreGroup(&to[g][place], upper);
      StoreGroup(&to[g + 8][place], lower);
    }
  }
}

// A warp's columns of kRows rows' results, as fragments.
template <typename M, int kColumns, int kRows>
struct Results {
  float sums[kRows][kColumns / 8][4] = {};

  // sums = sums * factors + weights . tile
  TXL_DEVICE void Add(const Slice<M, kColumns>& tile) {
    TXL_UNROLL
    for (int r = 0; r < kRows; ++r) Rescale(r);
    TXL_UNROLL
    for (int row = 0; row < kRingTile; row += 16) {
      uint32_t weights[kRows][4];
      TXL_UNROLL
      for (int r = 0; r < kRows; ++r) {
        LoadMatrices(
            weights[r],
            &SharedExchange<M>(r).weights[Lane() % 16][row + Lane() / 16 * 8]);
      }
      TXL_UNROLL
      for (int k = 0; k < kColumns / 16; ++k) {
        uint32_t rows[4];
        tile.LoadColumns(rows, row, k);
        TXL_UNROLL
        for (int r = 0; r < kRows; ++r) {
          MultiplyAdd<M>(sums[r][2 * k], weights[r], {rows[0], rows[1]});
          MultiplyAdd<M>(sums[r][2 * k + 1], weights[r], {rows[2], rows[3]});
        }
      }
    }
  }

 private:
  TXL_DEVICE void Rescale(int r) {
    const Exchange<M>& shared = SharedExchange<M>(r);
    const float upper = shared.factors[Lane() / 4];
    const float lower = shared.factors[Lane() / 4 + 8];
    if (!AnyInWarp(upper != 1 || lower != 1)) return;
    TXL_UNROLL
    for (int n = 0; n < kColumns / 8; ++n) {
      TXL_UNROLL
      for (int i = 0; i < 4; ++i) sums[r][n][i] *= i < 2 ? upper : lower;
    }
  }
};

// The softmax of the warp's own heads of one row.
template <typename M>
struct OwnHeads {
  int r = 0;  // the row's number in the block
  RunningSoftmax softmax[kOwnHeads];
  float positions[kOwnHeads] = {};  // the lane's scores of the next tile

  TXL_DEVICE static int Head(int i) { return WarpOfBlock() * kOwnHeads + i; }

  // They are on their way while the tile before is worked on.
  TXL_DEVICE void LoadPositions(const AttentionArgs<M, M>& args,
                                const Rows& rows, int distance) {
    TXL_UNROLL
    for (int i = 0; i < kOwnHeads; ++i) {
      if (Head(i) >= rows.heads) continue;
      const int64_t row =
          static_cast<int64_t>(rows.row + r) * args.heads + rows.head + Head(i);
      positions[i] = PositionScore(args.positions + row * args.position_stride,
                                   distance, args.distances);
    }
  }

  // Makes weights of a tile's scores; the heads step by step together, so that
  // one does not wait for the other.
  TXL_DEVICE void Weigh(float scale, TileView view) {
    Exchange<M>& shared = SharedExchange<M>(r);
    float scores[kOwnHeads];
    TXL_UNROLL
    for (int i = 0; i < kOwnHeads; ++i) {
      const int place = ScorePlace(Head(i), Lane());
      scores[i] = positions[i];
      TXL_UNROLL
      for (int w = 0; w < kWarps; ++w) {
        scores[i] += shared.scores[w][Head(i)][place];
      }
      scores[i] = view.Has(Lane()) ? scores[i] * scale : -INFINITY;
    }
    float highest[kOwnHeads];
    TXL_UNROLL
    for (int i = 0; i < kOwnHeads; ++i) highest[i] = WarpMax(scores[i]);
    TXL_UNROLL
    for (int i = 0; i < kOwnHeads; ++i) {
      const float factor = softmax[i].Raise(highest[i]);
      // Divided by the sum of weights as they are rounded, results are means.
      const M weight = Narrow<M>(softmax[i].Weight(scores[i]));
      softmax[i].sum += Widen(weight);
      shared.weights[Head(i)][Lane()] = weight;
      if (Lane() == 0) shared.factors[Head(i)] = factor;
    }
  }

  // Writes what belongs to the split's part, or keeps the sums for `out`.
  TXL_DEVICE void Finish(const AttentionArgs<M, M>& args,
                         const Rows& rows) const {
    const int64_t part = FirstPart(args, rows, r);
    TXL_UNROLL
    for (int i = 0; i < kOwnHeads; ++i) {
      const float sum = WarpSum(softmax[i].sum);
      if (Lane() != 0) continue;
      SharedExchange<M>(r).totals[Head(i)] = sum;
      if (args.splits == 1 || Head(i) >= rows.heads) continue;
      args.maxima[part + Head(i)] = softmax[i].maximum;
      args.sums[part + Head(i)] = sum;
    }
  }
};

// Row r of the block.
template <typename M, int kGroups>
TXL_DEVICE void WriteColumns(const AttentionArgs<M, M>& args, const Rows& rows,
                             int r, const float (&sums)[kGroups][4]) {
  const int64_t stride = args.rings.stride;
  const int64_t part = FirstPart(args, rows, r);
  TXL_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int head = Lane() / 4 + 8 * half;
    if (head >= rows.heads) continue;
    const int64_t to = (part + head) * stride;
    const float factor = 1 / SharedExchange<M>(r).totals[head];
    TXL_UNROLL
    for (int n = 0; n < kGroups; ++n) {
      const int column = (WarpOfBlock() * kGroups + n) * 8 + Lane() % 4 * 2;
      if (column >= stride) continue;
      Group<float, 2> pair = {{sums[n][2 * half], sums[n][2 * half + 1]}};
      if (args.splits > 1) {
        StoreGroup(args.partial + to + column, pair);
      } else {
        for (float& x : pair.x) x *= factor;
        StoreGroup(args.out + to + column, pair);
      }
    }
  }
}

}  // namespace txl::cuda::matrix_attention
