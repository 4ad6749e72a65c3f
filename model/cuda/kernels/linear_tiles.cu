// Many rows: square tiles of the product, whose operands the warps of a block
// share.

#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/linear.h"
#include "model/cuda/kernels/linear_fragments.h"

namespace txl::cuda {
namespace {

// A block's product of kSide rows and kSide outputs; its warps have 16 kM rows
// and 32 outputs each.
template <int kSide_>
struct Tile {
  static constexpr int kSide = kSide_;
  static constexpr int kM = kSide / 32;
  static constexpr int kRowWarps = kSide / (16 * kM);
  static constexpr int kOutputWarps = kSide / kWarpOutputs;
  static constexpr int kThreads = kRowWarps * kOutputWarps * kWarp;
  static constexpr int kOperandBytes = kSide * kTileRowBytes;
  static constexpr int kStageBytes = 2 * kOperandBytes;
  static constexpr int kStages = kSide == 64 ? 4 : 3;
  static_assert(kThreads / kWarp * kWarpSumsBytes<kM> <= kStages * kStageBytes);
};

template <typename T, typename Shape>
TXL_DEVICE void MultiplyAll(WarpSums<Shape::kM>& sums, TileSource<T> x,
                            TileSource<T> w, int count) {
  unsigned char* stages = SharedMemory();
  const auto stage_of = [&](int i) {
    return stages + i % Shape::kStages * Shape::kStageBytes;
  };
  const auto copy_w = [&](int i) {
    if (i >= count) return;
    CopyTile<Shape::kSide, Shape::kThreads>(stage_of(i) + Shape::kOperandBytes,
                                            w, Thread());
    w.from += kLinearUnit;
  };
  const auto copy_x = [&](int i) {
    if (i < count) {
      CopyTile<Shape::kSide, Shape::kThreads>(stage_of(i), x, Thread());
      x.from += kLinearUnit;
    }
    CloseCopies();
  };
  // The weights are on their way before what they are multiplied with is known.
  for (int i = 0; i < Shape::kStages - 1; ++i) copy_w(i);
  AwaitEarlierKernels();
  for (int i = 0; i < Shape::kStages - 1; ++i) copy_x(i);
  const int x_row = WarpOfBlock() / Shape::kOutputWarps * 16 * Shape::kM;
  const int w_row = WarpOfBlock() % Shape::kOutputWarps * kWarpOutputs;
  for (int i = 0; i < count; ++i) {
    FinishCopies<Shape::kStages - 2>();
    // Everybody is done with the stage that is filled next, too.
    BlockBarrier();
    copy_w(i + Shape::kStages - 1);
    copy_x(i + Shape::kStages - 1);
    const unsigned char* stage = stage_of(i);
    MultiplyTiles<T>(sums, stage, x_row, stage + Shape::kOperandBytes, w_row);
  }
  FinishCopies<0>();
}

template <typename T, typename Shape>
TXL_KERNEL_OF(Shape::kThreads)
TileLinear(LinearArgs<T> args) {
  const RowSpan span = BeginProduct(args);
  const int first_r = BlockY() * Shape::kSide;
  if (!span.Meets(first_r, Shape::kSide)) return;
  const SplitPlace place = PlaceOfBlock(args);
  const int first_n = BlockX() * Shape::kSide;
  const int64_t k = static_cast<int64_t>(place.first) * kLinearUnit;
  const int64_t w_row = static_cast<int64_t>(place.b) * args.outputs + first_n;
  WarpSums<Shape::kM> sums = {};
  MultiplyAll<T, Shape>(
      sums,
      {args.x + first_r * args.x_stride + place.b * args.x_batch + k,
       static_cast<int>(args.x_stride), span.end - first_r},
      {args.w + w_row * args.inputs + k, args.inputs, args.outputs - first_n},
      place.last - place.first);
  const int warp_r = WarpOfBlock() / Shape::kOutputWarps * 16 * Shape::kM;
  const int warp_n = WarpOfBlock() % Shape::kOutputWarps * kWarpOutputs;
  ShareSums(sums);
  if (first_n + warp_n >= args.outputs) return;
  StoreSharedSums<T, Shape::kM>(args, {span, place.split, 1},
                                {place.b, first_r + warp_r, first_n + warp_n});
}

template <typename T, typename Shape>
void LaunchWith(Stream& stream, const LinearArgs<T>& args) {
  constexpr int kSide = Shape::kSide;
  const GridShape grid = {(args.outputs + kSide - 1) / kSide,
                          (args.rows + kSide - 1) / kSide,
                          args.batch * args.splits};
  constexpr size_t kShared = Shape::kStages * Shape::kStageBytes;
  Launch(stream, {grid, Shape::kThreads, kShared}, TileLinear<T, Shape>, args);
}

}  // namespace

template <typename T>
void LaunchTileLinear(Stream& stream, const LinearArgs<T>& args,
                      const LinearPlan& plan) {
  if (plan.rows == 64) {
    LaunchWith<T, Tile<64>>(stream, args);
  } else {
    LaunchWith<T, Tile<128>>(stream, args);
  }
}

template void LaunchTileLinear(Stream&, const LinearArgs<Bf16>&,
                               const LinearPlan&);
template void LaunchTileLinear(Stream&, const LinearArgs<F16>&,
                               const LinearPlan&);

}  // namespace txl::cuda
