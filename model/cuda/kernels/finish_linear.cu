#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/linear_epilogue.h"

namespace txl::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kEach = 4;  // outputs of a thread

template <typename T>
TXL_KERNEL_OF(kThreads)
FinishLinear(LinearArgs<T> args) {
  AwaitEarlierKernels();
  const int column = (BlockX() * kThreads + Thread()) * kEach;
  if (column >= args.batch * args.outputs) return;
  if (!SpanOf(args.range, args.rows).Contains(BlockY())) return;
  const SumPlace at = {column / args.outputs, BlockY(), column % args.outputs};
  const float* pieces = args.partial + PartialIndex(args, 0, at);
  const int64_t distance =
      PartialIndex(args, 1, at) - PartialIndex(args, 0, at);
  FinishSums(args, at, SumOfPieces<kEach>(pieces, distance, args.splits));
}

}  // namespace

template <typename T>
void LaunchFinishLinear(Stream& stream, const LinearArgs<T>& args) {
  constexpr int kColumns = kThreads * kEach;
  const GridShape grid = {(args.batch * args.outputs + kColumns - 1) / kColumns,
                          args.rows};
  Launch(stream, {grid, kThreads}, FinishLinear<T>, args);
}

template void LaunchFinishLinear(Stream&, const LinearArgs<float>&);
template void LaunchFinishLinear(Stream&, const LinearArgs<Bf16>&);
template void LaunchFinishLinear(Stream&, const LinearArgs<F16>&);

}  // namespace txl::cuda
