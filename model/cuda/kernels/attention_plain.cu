// Attention without tensor cores: any width, any number of heads.

#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/attention.h"
#include "model/cuda/kernels/attention_slice.h"
#include "model/cuda/kernels/group.h"

namespace txl::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kHeads = 4;                       // of a block
constexpr int kPositions = kRingTile / kWarps;  // of a warp
static_assert(kRingTile == kWarp, "a lane has a position");
static_assert(kHeads * kPositions == kWarp / 2, "SumOverWarp");

// The block's shared memory, in floats.
struct Workspace {
  float* queries;           // [kHeads, stride]
  float* sums;              // [kHeads, stride], of weights and rows
  float (*scores)[kHeads];  // [kRingTile]
  Four<float>* weights;     // [kRingTile], of the heads
  float* factors;           // [kHeads]
};
constexpr int kFixedFloats = 2 * kRingTile * kHeads + kHeads;

TXL_DEVICE Workspace WorkspaceOf(int64_t stride) {
  auto* at = reinterpret_cast<float*>(SharedMemory());
  Workspace shared;
  shared.queries = at;
  shared.sums = at + kHeads * stride;
  at += 2 * kHeads * stride;
  shared.weights = reinterpret_cast<Four<float>*>(at);
  at += kRingTile * kHeads;
  shared.scores = reinterpret_cast<float(*)[kHeads]>(at);
  shared.factors = at + kRingTile * kHeads;
  return shared;
}

// Sums 16 numbers over the warp in halving steps, of which this one gives half
// of 2 kHalf numbers away; a lane receives the number of index lane / 2.
template <int kHalf>
TXL_DEVICE float SumOverWarp(float (&x)[kWarp / 2]) {
  const bool upper = (Lane() & (2 * kHalf)) != 0;
  TXL_UNROLL
  for (int i = 0; i < kHalf; ++i) {
    const float given = upper ? x[i] : x[i + kHalf];
    const float kept = upper ? x[i + kHalf] : x[i];
    x[i] = kept + ShuffleXor(given, 2 * kHalf);
  }
  if constexpr (kHalf > 1) {
    return SumOverWarp<kHalf / 2>(x);
  } else {
    return x[0] + ShuffleXor(x[0], 1);
  }
}

// query . row for the warp's positions of a tile and the block's heads.
template <typename M>
TXL_DEVICE void ScoreTile(const M* tile, int64_t stride, TileView view,
                          const Workspace& shared) {
  const int first = WarpOfBlock() * kPositions;
  float sums[kPositions * kHeads] = {};
  for (int64_t k = 4 * Lane(); k < stride; k += 4 * kWarp) {
    Four<float> queries[kHeads];
    TXL_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      queries[h] = LoadGroup<4>(shared.queries + h * stride + k);
    }
    TXL_UNROLL
    for (int p = 0; p < kPositions; ++p) {
      if (!view.Has(first + p)) continue;
      const Four<float> row = LoadGroup<4>(tile + (first + p) * stride + k);
      TXL_UNROLL
      for (int i = 0; i < 4 * kHeads; ++i) {
        sums[p * kHeads + i / 4] += queries[i / 4].x[i % 4] * row.x[i % 4];
      }
    }
  }
  const float sum = SumOverWarp<kWarp / 4>(sums);
  const int index = Lane() / 2;
  shared.scores[first + index / kHeads][index % kHeads] = sum;
}

// sums = sums * factor + weights . rows; a thread has columns of its own.
template <typename M>
TXL_DEVICE void AddTile(const M* tile, int64_t stride, TileView view,
                        const Workspace& shared) {
  for (int64_t k = 4 * Thread(); k < stride; k += 4 * kThreads) {
    Four<float> sums[kHeads];
    TXL_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      sums[h] = LoadGroup<4>(shared.sums + h * stride + k);
      for (int i = 0; i < 4; ++i) sums[h].x[i] *= shared.factors[h];
    }
    for (int p = view.low; p <= view.high; ++p) {
      const Four<float> row = LoadGroup<4>(tile + p * stride + k);
      const Four<float> weights = shared.weights[p];
      TXL_UNROLL
      for (int i = 0; i < 4 * kHeads; ++i) {
        sums[i / 4].x[i % 4] += weights.x[i / 4] * row.x[i % 4];
      }
    }
    TXL_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      StoreGroup(shared.sums + h * stride + k, sums[h]);
    }
  }
}

// Takes a tile's scores into the softmax of the warp's head.
template <typename M>
TXL_DEVICE void WeighTile(const AttentionArgs<float, M>& args,
                          const VisibleRange& visible, int head,
                          RunningSoftmax& softmax) {
  const Workspace shared = WorkspaceOf(args.rings.stride);
  const int h = WarpOfBlock();
  const int64_t row = static_cast<int64_t>(BlockZ()) * args.heads + head;
  float score = -INFINITY;
  if (ViewOf(visible).Has(Lane())) {
    score = (shared.scores[Lane()][h] +
             PositionScore(args.positions + row * args.position_stride,
                           visible.newest - Lane(), args.distances)) *
            (args.scale * kLog2E);
  }
  const float factor = softmax.Raise(WarpMax(score));
  const float weight = softmax.Weight(score);
  softmax.sum += weight;
  shared.weights[Lane()].x[h] = weight;
  if (Lane() == 0) shared.factors[h] = factor;
}

template <typename M>
TXL_DEVICE void Begin(const AttentionArgs<float, M>& args, int head,
                      int heads) {
  const int64_t stride = args.rings.stride;
  const Workspace shared = WorkspaceOf(stride);
  const int64_t row = static_cast<int64_t>(BlockZ()) * args.heads + head;
  for (int64_t i = Thread(); i < kHeads * stride; i += kThreads) {
    shared.queries[i] = i < heads * stride ? args.queries[row * stride + i] : 0;
    shared.sums[i] = 0;
  }
  for (int i = Thread(); i < kRingTile * kHeads; i += kThreads) {
    shared.weights[i / kHeads].x[i % kHeads] = 0;  // of heads that are missing
  }
  if (Thread() < kHeads) shared.factors[Thread()] = 1;
}

// Writes the split's part, or the row itself where there is one split.
template <typename M>
TXL_DEVICE void Finish(const AttentionArgs<float, M>& args, int head, int heads,
                       const RunningSoftmax& softmax) {
  const int64_t stride = args.rings.stride;
  const Workspace shared = WorkspaceOf(stride);
  const int64_t part =
      PartIndex(BlockZ(), BlockX(), args.splits, head, args.heads);
  const int h = WarpOfBlock();
  const float sum = WarpSum(softmax.sum);
  if (h < heads && Lane() == 0) {
    shared.factors[h] = args.splits == 1 ? sum : 1;
    if (args.splits > 1) {
      args.maxima[part + h] = softmax.maximum;
      args.sums[part + h] = sum;
    }
  }
  BlockBarrier();
  float* to = args.splits == 1 ? args.out : args.partial;
  for (int i = 0; i < heads; ++i) {
    for (int64_t k = Thread(); k < stride; k += kThreads) {
      to[(part + i) * stride + k] =
          shared.sums[i * stride + k] / shared.factors[i];
    }
  }
}

// One block: a split of a row, for kHeads heads.
template <typename M>
TXL_KERNEL_OF(kThreads)
PlainAttention(AttentionArgs<float, M> args) {
  AwaitEarlierKernels();
  const int r = BlockZ();
  const int32_t slot = args.rows.slot[r];
  if (slot < 0) return;
  const int head = BlockY() * kHeads;
  const int heads = args.heads - head < kHeads ? args.heads - head : kHeads;
  const AttentionRange range =
      RangeOf(args.rings, args.rows.position[r], 1, BlockX(), args.splits);
  if (range.tiles == 0) {
    WriteNoPart(args, r, BlockX(), head, head + heads);
    return;
  }
  const int64_t stride = args.rings.stride;
  const Workspace shared = WorkspaceOf(stride);
  Begin(args, head, heads);
  BlockBarrier();
  RunningSoftmax softmax;
  for (int i = 0; i < range.tiles; ++i) {
    const int start = i * kRingTile;
    const M* tile = RingRow(args.rings, slot, range.first + start);
    const VisibleRange visible = {range.visible.newest - start,
                                  range.visible.count};
    const TileView view = ViewOf(visible);
    ScoreTile(tile, stride, view, shared);
    BlockBarrier();
    const int h = WarpOfBlock();
    if (h < heads) WeighTile(args, visible, head + h, softmax);
    BlockBarrier();
    AddTile(tile, stride, view, shared);
  }
  BlockBarrier();
  Finish(args, head, heads, softmax);
}

}  // namespace

template <typename M>
void LaunchPlainParts(Stream& stream, const AttentionArgs<float, M>& args) {
  LaunchShape shape;
  shape.grid.x = args.splits;
  shape.grid.y = (args.heads + kHeads - 1) / kHeads;
  shape.grid.z = args.rows.count;
  shape.threads = kThreads;
  shape.shared_bytes =
      (static_cast<size_t>(2 * kHeads * args.rings.stride) + kFixedFloats) *
      sizeof(float);
  Launch(stream, shape, PlainAttention<M>, args);
}

template void LaunchPlainParts(Stream&, const AttentionArgs<float, float>&);
template void LaunchPlainParts(Stream&, const AttentionArgs<float, Bf16>&);
template void LaunchPlainParts(Stream&, const AttentionArgs<float, F16>&);

}  // namespace txl::cuda
