#include <algorithm>
#include <cmath>

#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/group.h"
#include "model/cuda/kernels/log_softmax.h"

namespace txl::cuda {
namespace {

constexpr int kMostThreads = 512;
constexpr int kEach = 4;   // neighbours that a thread takes at once
constexpr int kAhead = 4;  // such groups that it has on their way

// use(k, x[k], ..., x[k + 3]) for every group that begins below width.
template <typename Use>
TXL_DEVICE void ForGroups(const float* x, int64_t width, const Use& use) {
  const int64_t step = static_cast<int64_t>(Threads()) * kEach;
  for (int64_t first = Thread() * kEach; first < width;
       first += kAhead * step) {
    Four<float> loaded[kAhead];
    TXL_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      if (first + i * step >= width) continue;
      loaded[i] = LoadGroup<kEach>(x + first + i * step);
    }
    TXL_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      if (first + i * step < width) use(first + i * step, loaded[i]);
    }
  }
}

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
  ForGroups(x, args.width, [&](int64_t k, const Four<float>& group) {
    for (int i = 0; i < kEach && k + i < args.width; ++i) {
      most = most < group.x[i] ? group.x[i] : most;
    }
  });
  most = BlockMax(shared, most);
  float sum = 0;
  ForGroups(x, args.width, [&](int64_t k, const Four<float>& group) {
    for (int i = 0; i < kEach && k + i < args.width; ++i) {
      sum += expf(group.x[i] - most);
    }
  });
  const float shift = most + logf(BlockSum(shared, sum));
  const float more = args.index == nullptr
                         ? 0
                         : args.add[args.index[BlockX()] * args.add_stride];
  ForGroups(x, args.width, [&](int64_t k, Four<float> group) {
    for (int i = 0; i < kEach && k + i < args.width; ++i) {
      group.x[i] = group.x[i] - shift + more;
    }
    StoreGroup(x + k, group);
  });
}

}  // namespace

void LaunchLogSoftmax(Stream& stream, const LogSoftmaxArgs& args) {
  constexpr int64_t kOfWarp = kWarp * kEach;
  const int64_t warps = std::min<int64_t>((args.width + kOfWarp - 1) / kOfWarp,
                                          kMostThreads / kWarp);
  const size_t shared = static_cast<size_t>(warps) * sizeof(float);
  Launch(stream, {{args.rows}, static_cast<int>(warps) * kWarp, shared},
         LogSoftmax, args);
}

}  // namespace txl::cuda
