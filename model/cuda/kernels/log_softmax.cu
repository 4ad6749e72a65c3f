#include <algorithm>
#include <cmath>

#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/log_softmax.h"

namespace txl::cuda {
namespace {

constexpr int kMostThreads = 512;

// The threads' values in the order of their warps: the same bits everywhere.
TXL_DEVICE void ShareByWarp(float* shared, float value) {
  BlockBarrier();  // who still reads what lies there
  if (Lane() == 0) shared[WarpOfBlock()] = value;
  BlockBarrier();
}
TXL_DEVICE float BlockMax(float* shared, float value) {
  ShareByWarp(shared, WarpMax(value));
  float most = shared[0];
  for (int w = 1; w < Threads() / kWarp; ++w) {
    most = most < shared[w] ? shared[w] : most;
  }
  return most;
}
TXL_DEVICE float BlockSum(float* shared, float value) {
  ShareByWarp(shared, WarpSum(value));
  float sum = 0;
  for (int w = 0; w < Threads() / kWarp; ++w) sum += shared[w];
  return sum;
}

// One block per row.
TXL_KERNEL_OF(kMostThreads)
LogSoftmax(LogSoftmaxArgs args) {
  AwaitEarlierKernels();
  if (!SpanOf(args.range, args.rows).Contains(BlockX())) return;
  float* shared = reinterpret_cast<float*>(SharedMemory());
  float* x = args.x + BlockX() * args.stride;
  float most = -INFINITY;
  for (int64_t k = Thread(); k < args.width; k += Threads()) {
    most = most < x[k] ? x[k] : most;
  }
  most = BlockMax(shared, most);
  float sum = 0;
  for (int64_t k = Thread(); k < args.width; k += Threads()) {
    sum += expf(x[k] - most);
  }
  const float shift = most + logf(BlockSum(shared, sum));
  const float more = args.index == nullptr
                         ? 0
                         : args.add[args.index[BlockX()] * args.add_stride];
  for (int64_t k = Thread(); k < args.width; k += Threads()) {
    x[k] = x[k] - shift + more;
  }
}

}  // namespace

void LaunchLogSoftmax(Stream& stream, const LogSoftmaxArgs& args) {
  const int64_t warps =
      std::min<int64_t>((args.width + kWarp - 1) / kWarp, kMostThreads / kWarp);
  const size_t shared = static_cast<size_t>(warps) * sizeof(float);
  Launch(stream, {{args.rows}, static_cast<int>(warps) * kWarp, shared},
         LogSoftmax, args);
}

}  // namespace txl::cuda
