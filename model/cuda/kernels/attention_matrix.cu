// Attention on tensor cores, for 16 heads at a time. All warps of a block see
// the same stored rows, each warp some of their columns: it multiplies them
// with the queries' columns, the warps' sums make the scores, and then with
// the weights, which gives its columns of the result. So every stored row comes
// from memory once. A prompt's rows go two by two (attention_slice.h): so many
// have their sums in half of the registers, 16 heads of 1,024 columns each.

#include <algorithm>
#include <type_traits>

#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/attention.h"
#include "model/cuda/kernels/attention_block.h"
#include "model/cuda/kernels/attention_slice.h"

namespace txl::cuda {
namespace {

using matrix_attention::kExchangeBytes;
using matrix_attention::kHeads;
using matrix_attention::kThreads;
using matrix_attention::kWarps;
using matrix_attention::OwnHeads;
using matrix_attention::QueriesInRegisters;
using matrix_attention::QueriesInSharedMemory;
using matrix_attention::Results;
using matrix_attention::Rows;

constexpr int kMostColumns = 128;  // of a warp
// Places for tiles that a block needs; pairs need one more, for their queries.
constexpr int kLeastStages = 2;

// Starts the copies of the first tiles, waits for earlier kernels and brings
// the queries of kRows rows in, in the place of the last tile.
template <int kRows, typename M, int kColumns>
TXL_DEVICE Slice<M, kColumns> BringQueries(const AttentionArgs<M, M>& args,
                                           const Rows& rows,
                                           TilePipeline<M, kColumns>& tiles) {
  static_assert(kRows * kHeads <= kRingTile);
  for (int i = 0; i + 1 < tiles.stages; ++i) tiles.CopyNext(i);
  AwaitEarlierKernels();
  const int64_t stride = args.rings.stride;
  const Slice<M, kColumns> place = tiles.Place(tiles.stages - 1);
  TileView heads;
  heads.high = rows.heads - 1;
  TXL_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const int64_t row =
        static_cast<int64_t>(rows.row + r) * args.heads + rows.head;
    place.From(r * kHeads)
        .template Fetch<kHeads>(args.queries + row * stride, stride, heads);
  }
  WarpBarrier();
  return place;
}

// The tiles of `range` on their way from a slot's ring into the memory that
// this warp has for them.
template <typename M, int kColumns>
TXL_DEVICE TilePipeline<M, kColumns> TilesOf(const AttentionArgs<M, M>& args,
                                             const AttentionRange& range,
                                             int32_t slot, int stages) {
  TilePipeline<M, kColumns> tiles;
  tiles.rings = &args.rings;
  tiles.waiting = range.tiles;
  tiles.visible = range.visible;
  tiles.ring = args.rings.rows + slot * args.rings.slot_stride;
  tiles.row = RowOfRing(args.rings, range.first);
  tiles.memory = SharedMemory() + kExchangeBytes +
                 WarpOfBlock() * stages * Slice<M, kColumns>::kBytes;
  tiles.stages = stages;
  return tiles;
}

// A split of kRows rows of a slot at positions that follow each other.
template <typename M, int kColumns, int kRows>
TXL_DEVICE void Attend(const AttentionArgs<M, M>& args, const Rows& rows,
                       int stages) {
  const int32_t slot = args.rows.slot[rows.row];
  const int64_t position = args.rows.position[rows.row];
  const AttentionRange range =
      RangeOf(args.rings, position, kRows, BlockX(), args.splits);
  if (range.tiles == 0) {
    AwaitEarlierKernels();
    for (int r = 0; r < kRows; ++r) {
      WriteNoPart(args, rows.row + r, BlockX(), rows.head,
                  rows.head + rows.heads);
    }
    return;
  }
  // The first tiles are copied while earlier kernels still run, if none of them
  // can be the one that stores a row of this step there.
  const int64_t behind = range.first + (stages - 1) * kRingTile;
  if (behind > position - args.rows.count + 1) AwaitEarlierKernels();
  TilePipeline<M, kColumns> tiles =
      TilesOf<M, kColumns>(args, range, slot, stages);
  using Queries =
      std::conditional_t<kRows == 1, QueriesInRegisters<M, kColumns>,
                         QueriesInSharedMemory<M, kColumns>>;
  const Queries queries{BringQueries<kRows>(args, rows, tiles)};
  if constexpr (Queries::kStay) {
    --tiles.stages;
  } else {
    WarpBarrier();
    tiles.CopyNext(tiles.stages - 1);
  }
  Results<M, kColumns, kRows> results;
  OwnHeads<M> own[kRows];
  VisibleRange visible[kRows];  // from the next tile
  TXL_UNROLL
  for (int r = 0; r < kRows; ++r) {
    visible[r] = VisibleTo(args.rings, position + r, range.first);
    own[r].r = r;
    own[r].LoadPositions(args, rows, visible[r].newest - Lane());
  }
  for (int i = 0; i < range.tiles; ++i) {
    const Slice<M, kColumns> tile = tiles.Wait();
    Score<kRows>(queries, tile);
    BlockBarrier();
    TXL_UNROLL
    for (int r = 0; r < kRows; ++r) {
      own[r].Weigh(args.scale * kLog2E, ViewOf(visible[r]));
      visible[r].newest -= kRingTile;
      own[r].LoadPositions(args, rows, visible[r].newest - Lane());
    }
    BlockBarrier();
    results.Add(tile);
    tiles.Release();
  }
  FinishCopies<0>();
  TXL_UNROLL
  for (int r = 0; r < kRows; ++r) own[r].Finish(args, rows);
  BlockBarrier();
  TXL_UNROLL
  for (int r = 0; r < kRows; ++r) WriteColumns(args, rows, r, results.sums[r]);
}

// One block: a split of a row or of a pair of them, for kHeads heads; kColumns
// columns a warp.
template <typename M, int kColumns>
TXL_KERNEL_OF(kThreads)
MatrixAttention(AttentionArgs<M, M> args, int stages) {
  LetNextBegin();
  Rows rows;
  rows.row = BlockZ();
  rows.head = BlockY() * kHeads;
  rows.heads =
      args.heads - rows.head < kHeads ? args.heads - rows.head : kHeads;
  switch (RowsFrom(args.rows, rows.row, stages > kLeastStages)) {
    case 0:
      return AwaitEarlierKernels();
    case 1:
      return Attend<M, kColumns, 1>(args, rows, stages);
    default:
      return Attend<M, kColumns, kPairedRows>(args, rows, stages);
  }
}

// Columns of a warp, for rows of this stride; 0: there is no kernel.
int WarpColumns(int64_t stride) {
  for (int columns = 32; columns <= kMostColumns; columns *= 2) {
    if (stride <= columns * kWarps) return columns;
  }
  return 0;
}

int Stages(int columns, size_t shared_bytes) {
  if (columns == 0 || shared_bytes < kExchangeBytes) return 0;
  const size_t tile = sizeof(Bf16) * kRingTile * kWarps * columns;
  return static_cast<int>(
      std::min<size_t>((shared_bytes - kExchangeBytes) / tile,
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
  shape.shared_bytes = kExchangeBytes + static_cast<size_t>(stages) * kWarps *
                                            Slice<M, kColumns>::kBytes;
  Launch(stream, shape, MatrixAttention<M, kColumns>, args, stages);
}

}  // namespace

bool HasMatrixAttention(int64_t stride, size_t shared_bytes) {
  return Stages(WarpColumns(stride), shared_bytes) >= kLeastStages;
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
