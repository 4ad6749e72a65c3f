#include "model/cuda/kernels/linear.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace txl::cuda {
namespace {

constexpr int kStreamWarps = 4;
constexpr int kStreamOutputs = 32;  // of a warp

int64_t Ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t Tiles(const LinearShape& shape, int rows, int outputs) {
  return Ceil(shape.rows, rows) * Ceil(shape.outputs, outputs) * shape.batch;
}

// About how long the product takes, in 1/32 us of an H100: the blocks that a
// processor runs one after the other, each with a beginning and an end, and
// what partial sums cost (without a kernel of their own, if they have one).
int64_t Cost(const LinearShape& shape, const LinearPlan& plan, int splits,
             int processors) {
  constexpr int64_t kEnds = 16;
  const int64_t unit = plan.rows == 64 ? 5 : 16;
  const int64_t blocks = Tiles(shape, plan.rows, plan.outputs) * splits;
  const int64_t units = Ceil(shape.inputs / kLinearUnit, splits);
  const int64_t run =
      Ceil(blocks, processors) * (Ceil(units, plan.input_warps) * unit + kEnds);
  if (splits == 1) return run;
  const int64_t numbers = int64_t{shape.rows} * shape.outputs * shape.batch;
  return run + 8 + Ceil(splits * numbers, 1 << 14);
}

}  // namespace

LinearPlan PlanLinear(const LinearShape& shape) {
  if (shape.rows <= 32) {
    const int units = shape.inputs / kLinearUnit;
    const int input_warps = units >= 4 ? 4 : units >= 2 ? 2 : 1;
    return {LinearKernel::kStream, shape.rows <= 16 ? 16 : 32,
            kStreamOutputs * (kStreamWarps / input_warps), input_warps};
  }
  // Large tiles read less and multiply faster, where there are enough of them
  // and they are not mostly beginning and end.
  constexpr int kEnough = 100;
  const bool large = shape.rows >= 128 && shape.inputs >= 512 &&
                     Tiles(shape, 128, 128) >= kEnough;
  const int side = large ? 128 : 64;
  return {LinearKernel::kTiles, side, side, 1};
}

int LinearSplits(const LinearShape& shape, FinishedBy finished_by,
                 int processors) {
  // A kernel of a step's graph takes 4 us on an H200 with few rows
  // (docs/measurements.md); half of it is left if kernels overlap.
  constexpr int64_t kKernel = 64;
  const int64_t finish = finished_by == FinishedBy::kOwnKernel ? kKernel : 0;
  const LinearPlan plan = PlanLinear(shape);
  int best = 1;
  int64_t best_cost = Cost(shape, plan, 1, processors);
  for (int splits = 2; splits <= shape.inputs / kLinearUnit; ++splits) {
    const int64_t cost = Cost(shape, plan, splits, processors) + finish;
    if (cost < best_cost) {
      best = splits;
      best_cost = cost;
    }
  }
  return best;
}

template <typename T>
void LaunchLinear(Stream& stream, const LinearArgs<T>& args) {
  if constexpr (std::is_same_v<T, float>) {
    LaunchPlainLinear(stream, args);
  } else {
    const LinearPlan plan =
        PlanLinear({args.rows, args.inputs, args.outputs, args.batch});
    if (plan.kernel == LinearKernel::kStream) {
      LaunchStreamLinear(stream, args, plan);
    } else {
      LaunchTileLinear(stream, args, plan);
    }
  }
}

template void LaunchLinear(Stream&, const LinearArgs<float>&);
template void LaunchLinear(Stream&, const LinearArgs<Bf16>&);
template void LaunchLinear(Stream&, const LinearArgs<F16>&);

}  // namespace txl::cuda
