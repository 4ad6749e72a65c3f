#include "model/cuda/device/launch.h"
#include "model/cuda/device/warp.h"
#include "tests/model/cuda/device/warp_kernels.h"

namespace txl::cuda {
namespace {

TXL_KERNEL WarpAndBlock(const double* values, const WarpResults results) {
  AwaitEarlierKernels();
  BlockScratch& scratch = *reinterpret_cast<BlockScratch*>(SharedMemory());
  const int t = Thread();
  results.warp_sum[t] = WarpReduce(values[t], Plus());
  results.warp_running[t] = WarpRunningSum(values[t]);
  const SumAndLargest mine = {values[t], t, 0};
  results.block_both[t] = BlockReduce(
      mine,
      [](const SumAndLargest& a, const SumAndLargest& b) {
        return SumAndLargest{a.sum + b.sum,
                             a.largest < b.largest ? b.largest : a.largest, 0};
      },
      scratch);
  const PlaceInSum place = BlockRunningSum(t % 5, scratch);
  results.block_before[t] = place.before;
  results.block_total[t] = place.total;
}

}  // namespace

void LaunchWarpFunctions(Stream& stream, int threads, const double* values,
                         const WarpResults& results) {
  Launch(stream, {{1}, threads, sizeof(BlockScratch)}, WarpAndBlock, values,
         results);
}

}  // namespace txl::cuda
