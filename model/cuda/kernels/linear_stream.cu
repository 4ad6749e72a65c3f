// Few rows: a block has all of them, and its warps read the weights side by
// side, as many bytes in flight as shared memory holds.

#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/linear.h"
#include "model/cuda/kernels/linear_fragments.h"

namespace txl::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;

// kM: a block's rows, by 16.
template <int kM>
struct Stages {
  static constexpr int kCount = kM == 1 ? 4 : 3;
  static constexpr int kRowsBytes = 16 * kM * kTileRowBytes;
  static constexpr int kBytes = kRowsBytes + kWarpOutputs * kTileRowBytes;
  static constexpr int kWarpBytes = kCount * kBytes;
  static_assert(kWarpSumsBytes<kM> <= kWarpBytes);
};

// What a warp multiplies: `count` units of inputs, `step` numbers apart.
template <typename T>
struct WarpWork {
  TileSource<T> x;
  TileSource<T> w;
  int count;
  int step;
};

template <typename T, int kM>
TXL_DEVICE WarpWork<T> WorkOfWarp(const LinearArgs<T>& args,
                                  const RowSpan& span, const SplitPlace& place,
                                  int input_warps, int n) {
  const int r = BlockY() * 16 * kM;
  const int phase = WarpOfBlock() % input_warps;
  const int unit = place.first + phase;
  const int units = n < args.outputs ? place.last - unit : 0;
  const int64_t k = static_cast<int64_t>(unit) * kLinearUnit;
  const int64_t w_row = static_cast<int64_t>(place.b) * args.outputs + n;
  return {{args.x + r * args.x_stride + place.b * args.x_batch + k,
           static_cast<int>(args.x_stride), span.end - r},
          {args.w + w_row * args.inputs + k, args.inputs, kWarpOutputs},
          units > 0 ? (units + input_warps - 1) / input_warps : 0,
          input_warps * kLinearUnit};
}

// A warp's copies and products; no other warp takes part.
template <typename T, int kM>
TXL_DEVICE void MultiplyStream(WarpSums<kM>& sums, WarpWork<T> work,
                               unsigned char* stages) {
  using S = Stages<kM>;
  const auto stage_of = [&](int i) {
    return stages + i % S::kCount * S::kBytes;
  };
  const auto copy_w = [&](int i) {
    if (i >= work.count) return;
    CopyTile<kWarpOutputs, kWarp>(stage_of(i) + S::kRowsBytes, work.w, Lane());
    work.w.from += work.step;
  };
  const auto copy_x = [&](int i) {
    if (i < work.count) {
      CopyTile<16 * kM, kWarp>(stage_of(i), work.x, Lane());
      work.x.from += work.step;
    }
    CloseCopies();
  };
  // The weights are on their way before what they are multiplied with is known.
  for (int i = 0; i < S::kCount; ++i) copy_w(i);
  AwaitEarlierKernels();
  for (int i = 0; i < S::kCount; ++i) copy_x(i);
  for (int i = 0; i < work.count; ++i) {
    FinishCopies<S::kCount - 1>();
    WarpBarrier();
    const unsigned char* stage = stage_of(i);
    MultiplyTiles<T>(sums, stage, 0, stage + S::kRowsBytes, 0);
    WarpBarrier();
    copy_w(i + S::kCount);
    copy_x(i + S::kCount);
  }
  FinishCopies<0>();
}

template <typename T, int kM>
TXL_KERNEL_OF(kThreads)
StreamLinear(LinearArgs<T> args, int input_warps) {
  const RowSpan span = BeginProduct(args);
  if (!span.Meets(BlockY() * 16 * kM, 16 * kM)) return;
  const SplitPlace place = PlaceOfBlock(args);
  const int group =
      BlockX() * (kWarps / input_warps) + WarpOfBlock() / input_warps;
  const int n = group * kWarpOutputs;
  WarpSums<kM> sums = {};
  MultiplyStream<T>(sums, WorkOfWarp<T, kM>(args, span, place, input_warps, n),
                    SharedMemory() + WarpOfBlock() * Stages<kM>::kWarpBytes);
  ShareSums(sums);
  if (n >= args.outputs) return;
  StoreSharedSums<T, kM>(args, {span, place.split, input_warps},
                         {place.b, BlockY() * 16 * kM, n});
}

template <typename T, int kM>
void LaunchWith(Stream& stream, const LinearArgs<T>& args,
                const LinearPlan& plan) {
  const GridShape grid = {(args.outputs + plan.outputs - 1) / plan.outputs,
                          (args.rows + 16 * kM - 1) / (16 * kM),
                          args.batch * args.splits};
  constexpr size_t kShared = kWarps * Stages<kM>::kWarpBytes;
  Launch(stream, {grid, kThreads, kShared}, StreamLinear<T, kM>, args,
         plan.input_warps);
}

}  // namespace

template <typename T>
void LaunchStreamLinear(Stream& stream, const LinearArgs<T>& args,
                        const LinearPlan& plan) {
  if (plan.rows == 16) {
    LaunchWith<T, 1>(stream, args, plan);
  } else {
    LaunchWith<T, 2>(stream, args, plan);
  }
}

template void LaunchStreamLinear(Stream&, const LinearArgs<Bf16>&,
                                 const LinearPlan&);
template void LaunchStreamLinear(Stream&, const LinearArgs<F16>&,
                                 const LinearPlan&);

}  // namespace txl::cuda
