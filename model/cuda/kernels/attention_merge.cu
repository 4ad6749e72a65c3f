#include <algorithm>

#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/attention_passes.h"
#include "model/cuda/kernels/attention_range.h"
#include "model/cuda/kernels/group.h"

namespace txl::cuda {
namespace {

constexpr int kMostWarps = 8;
constexpr int kColumns = 4 * kWarp;  // of a block

// What every part of a head counts: 2^(its maximum - maximum) / sum.
struct Scale {
  float maximum;
  float sum;
};

template <typename Q>
TXL_DEVICE Scale ScaleOf(const MergeArgs<Q>& args, int64_t first) {
  float maximum = -INFINITY;
  for (int s = Lane(); s < args.splits; s += kWarp) {
    const float other =
        args.maxima[first + static_cast<int64_t>(s) * args.heads];
    maximum = maximum < other ? other : maximum;
  }
  maximum = WarpMax(maximum);
  float sum = 0;
  for (int s = Lane(); s < args.splits; s += kWarp) {
    const int64_t part = first + static_cast<int64_t>(s) * args.heads;
    sum += args.sums[part] * exp2f(args.maxima[part] - maximum);
  }
  return {maximum, WarpSum(sum)};
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
  const Scale scale = ScaleOf(args, first);
  const int warps = Threads() / kWarp;
  const int end = args.splits * (WarpOfBlock() + 1) / warps;
  Four<float> sum;
  for (int s = args.splits * WarpOfBlock() / warps; s < end; ++s) {
    const int64_t part = first + static_cast<int64_t>(s) * args.heads;
    const float weight = exp2f(args.maxima[part] - scale.maximum);
    if (!mine || weight == 0) continue;  // an empty part was not written
    const Four<float> x =
        LoadGroup<4>(args.partial + part * args.stride + column);
    for (int i = 0; i < 4; ++i) sum.x[i] += weight * x.x[i];
  }
  auto* sums = reinterpret_cast<Four<float>*>(SharedMemory());
  sums[Thread()] = sum;
  BlockBarrier();
  if (WarpOfBlock() != 0 || !mine) return;
  for (int w = 1; w < warps; ++w) {
    for (int i = 0; i < 4; ++i) sum.x[i] += sums[w * kWarp + Lane()].x[i];
  }
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
