// Attention on tensor cores, for 16 heads at a time. All warps of a block see
// the same stored rows, each warp some of their columns: it multiplies them
// with the queries' columns, the warps' sums make the scores, and then with
// the weights, which gives its columns of the result. So every stored row comes
// from memory once.

#include <algorithm>

#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/attention_passes.h"
#include "model/cuda/kernels/attention_slice.h"
#include "model/cuda/kernels/group.h"

namespace txl::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kHeads = 16;                    // of a block
constexpr int kOwnHeads = kHeads / kWarps;    // whose softmax a warp does
constexpr int kWeightStride = kRingTile + 8;  // eight rows, eight banks
constexpr int kMostColumns = 128;             // of a warp
static_assert(kRingTile == kWarp, "a lane has a position");

// What the warps tell each other.
template <typename M>
struct alignas(128) Exchange {
  float scores[kWarps][kHeads][kRingTile];  // of each warp's columns
  M weights[kHeads][kWeightStride];
  float factors[kHeads];  // of what was summed up before
  float totals[kHeads];
};
template <typename M>
TXL_DEVICE Exchange<M>& SharedExchange() {
  return *reinterpret_cast<Exchange<M>*>(SharedMemory());
}

// Where the score of a position lies in its row: four heads of a fragment, four
// different groups of banks.
TXL_DEVICE int ScorePlace(int head, int position) {
  return position ^ (head % 4 * 8);
}

// The block's row and heads.
struct Rows {
  int row;
  int head;
  int heads;
};

// A warp's columns of queries and results, as fragments.
template <typename M, int kColumns>
struct Columns {
  uint32_t queries[kColumns / 16][4];
  float sums[kColumns / 8][4];

  // Scores of a tile as far as these columns make them.
  TXL_DEVICE void Score(const Slice<M, kColumns>& tile) const {
    float scores[kRingTile / 8][4] = {};
    TXL_UNROLL
    for (int k = 0; k < kColumns / 16; ++k) {
      TXL_UNROLL
      for (int row = 0; row < kRingTile; row += 16) {
        uint32_t rows[4];
        tile.LoadRows(rows, row, k);
        MultiplyAdd<M>(scores[row / 8], queries[k], {rows[0], rows[1]});
        MultiplyAdd<M>(scores[row / 8 + 1], queries[k], {rows[2], rows[3]});
      }
    }
    const int g = Lane() / 4;
    const int t = Lane() % 4;
    auto& to = SharedExchange<M>().scores[WarpOfBlock()];
    TXL_UNROLL
    for (int n = 0; n < kRingTile / 8; ++n) {
      const int place = ScorePlace(g, 8 * n + 2 * t);
      const Group<float, 2> upper = {{scores[n][0], scores[n][1]}};
      const Group<float, 2> lower = {{scores[n][2], scores[n][3]}};
      StoreGroup(&to[g][place], upper);
      StoreGroup(&to[g + 8][place], lower);
    }
  }

  // sums = sums * factors + weights . tile
  TXL_DEVICE void Add(const Slice<M, kColumns>& tile) {
    const Exchange<M>& shared = SharedExchange<M>();
    const float upper = shared.factors[Lane() / 4];
    const float lower = shared.factors[Lane() / 4 + 8];
    if (AnyInWarp(upper != 1 || lower != 1)) {
      TXL_UNROLL
      for (int n = 0; n < kColumns / 8; ++n) {
        TXL_UNROLL
        for (int i = 0; i < 4; ++i) sums[n][i] *= i < 2 ? upper : lower;
      }
    }
    TXL_UNROLL
    for (int row = 0; row < kRingTile; row += 16) {
      uint32_t weights[4];
      LoadMatrices(weights,
                   &shared.weights[Lane() % 16][row + Lane() / 16 * 8]);
      TXL_UNROLL
      for (int k = 0; k < kColumns / 16; ++k) {
        uint32_t rows[4];
        tile.LoadColumns(rows, row, k);
        MultiplyAdd<M>(sums[2 * k], weights, {rows[0], rows[1]});
        MultiplyAdd<M>(sums[2 * k + 1], weights, {rows[2], rows[3]});
      }
    }
  }
};

// The softmax of the warp's own heads.
template <typename M>
struct OwnHeads {
  RunningSoftmax softmax[kOwnHeads];
  float positions[kOwnHeads] = {};  // the lane's scores of the next tile

  TXL_DEVICE static int Head(int i) { return WarpOfBlock() * kOwnHeads + i; }

  // They are on their way while the tile before is worked on.
  TXL_DEVICE void LoadPositions(const AttentionArgs<M, M>& args,
                                const Rows& rows, int64_t distance) {
    TXL_UNROLL
    for (int i = 0; i < kOwnHeads; ++i) {
      if (Head(i) >= rows.heads) continue;
      const int64_t row =
          static_cast<int64_t>(rows.row) * args.heads + rows.head + Head(i);
      positions[i] = PositionScore(args.positions + row * args.position_stride,
                                   distance, args.distances);
    }
  }

  // Makes weights of a tile's scores; the heads step by step together, so that
  // one does not wait for the other.
  TXL_DEVICE void Weigh(float scale, TileView view) {
    Exchange<M>& shared = SharedExchange<M>();
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
  TXL_DEVICE void Finish(const AttentionArgs<M, M>& args, const Rows& rows,
                         int64_t part) const {
    TXL_UNROLL
    for (int i = 0; i < kOwnHeads; ++i) {
      const float sum = WarpSum(softmax[i].sum);
      if (Lane() != 0) continue;
      SharedExchange<M>().totals[Head(i)] = sum;
      if (args.splits == 1 || Head(i) >= rows.heads) continue;
      args.maxima[part + Head(i)] = softmax[i].maximum;
      args.sums[part + Head(i)] = sum;
    }
  }
};

template <typename M, int kColumns>
TXL_DEVICE void WriteColumns(const AttentionArgs<M, M>& args, const Rows& rows,
                             int64_t part,
                             const Columns<M, kColumns>& columns) {
  const int64_t stride = args.rings.stride;
  TXL_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int head = Lane() / 4 + 8 * half;
    if (head >= rows.heads) continue;
    const int64_t to = (part + head) * stride;
    const float factor = 1 / SharedExchange<M>().totals[head];
    TXL_UNROLL
    for (int n = 0; n < kColumns / 8; ++n) {
      const int column = WarpOfBlock() * kColumns + 8 * n + Lane() % 4 * 2;
      if (column >= stride) continue;
      Group<float, 2> pair = {
          {columns.sums[n][2 * half], columns.sums[n][2 * half + 1]}};
      if (args.splits > 1) {
        StoreGroup(args.partial + to + column, pair);
      } else {
        for (float& x : pair.x) x *= factor;
        StoreGroup(args.out + to + column, pair);
      }
    }
  }
}

// Starts the copies of the first tiles and brings the queries in, in the place
// of the last of them.
template <typename M, int kColumns>
TXL_DEVICE void Begin(const AttentionArgs<M, M>& args, const Rows& rows,
                      TilePipeline<M, kColumns>& tiles,
                      Columns<M, kColumns>& columns) {
  const int64_t row = static_cast<int64_t>(rows.row) * args.heads + rows.head;
  const Slice<M, kColumns> place = tiles.Place(tiles.stages - 1);
  TileView heads;
  heads.high = rows.heads - 1;
  place.template Copy<kHeads>(args.queries + row * args.rings.stride,
                              static_cast<int>(args.rings.stride), heads);
  CloseCopies();
  for (int i = 0; i + 1 < tiles.stages; ++i) tiles.CopyNext(i);
  tiles.FinishOldest();
  TXL_UNROLL
  for (int k = 0; k < kColumns / 16; ++k) {
    place.LoadLeft(columns.queries[k], k);
  }
  WarpBarrier();
  tiles.CopyNext(tiles.stages - 1);
  TXL_UNROLL
  for (int n = 0; n < kColumns / 8; ++n) {
    TXL_UNROLL
    for (int i = 0; i < 4; ++i) columns.sums[n][i] = 0;
  }
}

// One block: a split of a row, for kHeads heads; kColumns columns a warp.
template <typename M, int kColumns>
TXL_KERNEL_OF(kThreads)
MatrixAttention(AttentionArgs<M, M> args, int stages) {
  Rows rows;
  rows.row = BlockZ();
  const int32_t slot = args.rows.slot[rows.row];
  if (slot < 0) return;
  rows.head = BlockY() * kHeads;
  rows.heads =
      args.heads - rows.head < kHeads ? args.heads - rows.head : kHeads;
  const AttentionRange range =
      RangeOf(args.rings, args.rows.position[rows.row], BlockX(), args.splits);
  if (range.tiles == 0) {
    WriteNoPart(args, rows.row, BlockX(), rows.head, rows.head + rows.heads);
    return;
  }
  TilePipeline<M, kColumns> tiles;
  tiles.rings = &args.rings;
  tiles.range = range;
  tiles.ring = args.rings.rows + slot * args.rings.slot_stride;
  tiles.next = RingRow(args.rings, slot, range.tile * kRingTile);
  tiles.memory = SharedMemory() + sizeof(Exchange<M>) +
                 WarpOfBlock() * stages * Slice<M, kColumns>::kBytes;
  tiles.stages = stages;
  Columns<M, kColumns> columns;
  OwnHeads<M> own;
  Begin(args, rows, tiles, columns);
  // From the row to the lane's position of the next tile.
  int64_t distance = range.newest - range.tile * kRingTile - Lane();
  own.LoadPositions(args, rows, distance);
  for (int i = 0; i < range.tiles; ++i) {
    const Slice<M, kColumns> tile = tiles.Wait();
    columns.Score(tile);
    BlockBarrier();
    own.Weigh(args.scale * kLog2E, ViewOf(range, range.tile + i));
    distance -= kRingTile;
    own.LoadPositions(args, rows, distance);
    BlockBarrier();
    columns.Add(tile);
    tiles.Release();
  }
  FinishCopies<0>();
  const int64_t part =
      PartIndex(rows.row, BlockX(), args.splits, rows.head, args.heads);
  own.Finish(args, rows, part);
  BlockBarrier();
  WriteColumns(args, rows, part, columns);
}

// Columns of a warp, for rows of this stride; 0: there is no kernel.
int WarpColumns(int64_t stride) {
  for (int columns = 32; columns <= kMostColumns; columns *= 2) {
    if (stride <= columns * kWarps) return columns;
  }
  return 0;
}

int Stages(int columns, size_t shared_bytes) {
  const size_t fixed = sizeof(Exchange<Bf16>);
  if (columns == 0 || shared_bytes < fixed) return 0;
  const size_t tile = sizeof(Bf16) * kRingTile * kWarps * columns;
  return static_cast<int>(
      std::min<size_t>((shared_bytes - fixed) / tile,
                       TilePipeline<Bf16, kMostColumns>::kMostStages));
}

template <int kColumns, typename M>
void LaunchColumns(Stream& stream, const AttentionArgs<M, M>& args) {
  const int stages = Stages(kColumns, args.shared_bytes);
  LaunchShape shape;
  shape.grid.x = args.splits;
  shape.grid.y = (args.heads + kHeads - 1) / kHeads;
  shape.grid.z = args.rows.count;
  shape.threads = kThreads;
  shape.shared_bytes = sizeof(Exchange<M>) + static_cast<size_t>(stages) *
                                                 kWarps *
                                                 Slice<M, kColumns>::kBytes;
  Launch(stream, shape, MatrixAttention<M, kColumns>, args, stages);
}

}  // namespace

bool HasMatrixAttention(int64_t stride, size_t shared_bytes) {
  return Stages(WarpColumns(stride), shared_bytes) >= 2;
}

template <typename M>
void LaunchMatrixParts(Stream& stream, const AttentionArgs<M, M>& args) {
  if (!HasMatrixAttention(args.rings.stride, args.shared_bytes)) {
    throw DeviceError("no tensor core kernel for rows of this stride");
  }
  switch (WarpColumns(args.rings.stride)) {
    case 32:
      return LaunchColumns<32>(stream, args);
    case 64:
      return LaunchColumns<64>(stream, args);
    default:
      return LaunchColumns<kMostColumns>(stream, args);
  }
}

template void LaunchMatrixParts(Stream&, const AttentionArgs<Bf16, Bf16>&);
template void LaunchMatrixParts(Stream&, const AttentionArgs<F16, F16>&);

}  // namespace txl::cuda
