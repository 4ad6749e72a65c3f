#include <cmath>

#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/log_softmax.h"

namespace txl::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / kWarp;

// The threads' values in the order of their warps: the same bits everywhere.
TXL_DEVICE void ShareByWarp(float* shared, float value) {
  BlockBarrier();  // who still reads what lies there
  if (Lane() == 0) shared[WarpOfBlock()] = value;
  BlockBarrier();
}
TXL_DEVICE float BlockMax(float* shared, float value) {
  ShareByWarp(shared, WarpMax(value));
  float most = shared[0];
  for (int w = 1; w < kWarps; ++w) most = most < shared[w] ? shared[w] : most;
  return most;
}
TXL_DEVICE float BlockSum(float* shared, float value) {
  ShareByWarp(shared, WarpSum(value));
  float sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += shared[w];
  return sum;
}

// One block per row.
TXL_KERNEL_OF(kThreads) LogSoftmax(LogSoftmaxArgs args) {
  float* shared = reinterpret_cast<float*>(SharedMemory());
  float* x = args.x + BlockX() * args.stride;
  float most = -INFINITY;
  for (int64_t k = Thread(); k < args.width; k += kThreads) {
    most = most < x[k] ? x[k] : most;
  }
  most = BlockMax(shared, most);
  float sum = 0;
  for (int64_t k = Thread(); k < args.width; k += kThreads) {
    sum += expf(x[k] - most);
  }
  const float shift = most + logf(BlockSum(shared, sum));
  for (int64_t k = Thread(); k < args.width; k += kThreads) x[k] -= shift;
}

}  // namespace

void LaunchLogSoftmax(Stream& stream, const LogSoftmaxArgs& args) {
  Launch(stream, {{args.rows}, kThreads, kWarps * sizeof(float)}, LogSoftmax,
         args);
}

}  // namespace txl::cuda
