#include <algorithm>

#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/attention.h"
#include "model/cuda/kernels/attention_slice.h"
#include "model/cuda/kernels/group.h"

namespace txl::cuda {
namespace {

constexpr int kMostWarps = 8;
constexpr int kColumns = 4 * kWarp;  // of a block

// Parts of a head whose numbers a warp has on their way at a time. They are
// asked for before it is known what they count: one behind the other would take
// as long as memory takes to answer for each.
constexpr int kAhead = 4;

// Splits [next, end) of a warp.
struct Turn {
  int next;
  int end;
};

// What lies in the places of the next parts; empty ones were not written.
template <typename Q>
TXL_DEVICE void LoadParts(const MergeArgs<Q>& args, const float* first,
                          Turn turn, Four<float> (&parts)[kAhead]) {
  TXL_UNROLL
  for (int i = 0; i < kAhead; ++i) {
    if (turn.next + i >= turn.end) continue;
    const int64_t part = static_cast<int64_t>(turn.next + i) * args.heads;
    parts[i] = LoadGroup<4>(first + part * args.stride);
  }
}

// What every part of a head counts: 2^(its maximum - maximum) / sum.
struct Scale {
  float maximum;
  float sum;
};

template <typename Q>
TXL_DEVICE Scale ScaleOf(const MergeArgs<Q>& args, int64_t first) {
  float maximum = -INFINITY;
  float sum = 0;  // of the lane's parts, in units of 2^maximum
  for (int s = Lane(); s < args.splits; s += kWarp) {
    const int64_t part = first + static_cast<int64_t>(s) * args.heads;
    const float other = args.maxima[part];
    const float more = args.sums[part];
    if (other == -INFINITY) continue;
    const float highest = maximum < other ? other : maximum;
    sum = sum * exp2f(maximum - highest) + more * exp2f(other - highest);
    maximum = highest;
  }
  const float highest = WarpMax(maximum);
  return {highest, WarpSum(sum * exp2f(maximum - highest))};
}

// One block: kColumns columns of a head of a row. Its warps share the splits;
// what they found is added oldest first.
template <typename Q>
TXL_KERNEL_OF(kMostWarps* kWarp)
MergeParts(MergeArgs<Q> args) {
  AwaitEarlierKernels();
  const int r = BlockZ();
  if (args.slot[r] < 0) return;
  const int64_t column = static_cast<int64_t>(BlockX()) * kColumns + 4 * Lane();
  const bool mine = column < args.stride;
  const int64_t first = PartIndex(r, 0, args.splits, BlockY(), args.heads);
  const float* from = args.partial + first * args.stride + (mine ? column : 0);
  const int warps = Threads() / kWarp;
  Turn turn = {args.splits * WarpOfBlock() / warps,
               args.splits * (WarpOfBlock() + 1) / warps};
  Four<float> parts[kAhead];
  LoadParts(args, from, turn, parts);
  const Scale scale = ScaleOf(args, first);
  Four<float> sum;
  while (turn.next < turn.end) {
    TXL_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      if (turn.next + i >= turn.end) continue;
      const int64_t part = static_cast<int64_t>(turn.next + i) * args.heads;
      const float weight = exp2f(args.maxima[first + part] - scale.maximum);
      if (weight == 0) continue;  // it may be an empty one
      for (int k = 0; k < 4; ++k) sum.x[k] += weight * parts[i].x[k];
    }
    turn.next += kAhead;
    LoadParts(args, from, turn, parts);
  }
  auto* sums = reinterpret_cast<Four<float>*>(SharedMemory());
  sums[Thread()] = sum;
  BlockBarrier();
  if (WarpOfBlock() != 0 || !mine) return;
  for (int w = 1; w < warps; ++w) Add(sum, sums[w * kWarp + Lane()]);
  for (int i = 0; i < 4; ++i) sum.x[i] /= scale.sum;
  const int64_t row = static_cast<int64_t>(r) * args.heads + BlockY();
  StoreGroup(args.out + row * args.stride + column, sum);
}

}  // namespace

template <typename Q>
void LaunchMergeParts(Stream& stream, const MergeArgs<Q>& args) {
  LaunchShape shape;
  shape.grid.x = static_cast<int>((args.stride + kColumns - 1) / kColumns);
  shape.grid.y = args.heads;
  shape.grid.z = args.count;
  shape.threads = std::min(args.splits, kMostWarps) * kWarp;
  shape.shared_bytes = static_cast<size_t>(shape.threads) * sizeof(Four<float>);
  Launch(stream, shape, MergeParts<Q>, args);
}

template void LaunchMergeParts(Stream&, const MergeArgs<float>&);
template void LaunchMergeParts(Stream&, const MergeArgs<Bf16>&);
template void LaunchMergeParts(Stream&, const MergeArgs<F16>&);

}  // namespace txl::cuda
