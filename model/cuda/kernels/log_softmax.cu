#include <algorithm>
#include <cmath>

#include "model/cuda/device/launch.h"
#include "model/cuda/device/warp.h"
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

struct Larger {
  TXL_DEVICE float operator()(float a, float b) const { return a < b ? b : a; }
};

// One block per row.
TXL_KERNEL_OF(kMostThreads)
LogSoftmax(LogSoftmaxArgs args) {
  AwaitEarlierKernels();
  if (!SpanOf(args.range, args.rows).Contains(BlockX())) return;
  auto& scratch = *reinterpret_cast<BlockScratch*>(SharedMemory());
  float* x = args.x + BlockX() * args.stride;
  float most = -INFINITY;
  ForGroups(x, args.width, [&](int64_t k, const Four<float>& group) {
    for (int i = 0; i < kEach && k + i < args.width; ++i) {
      most = most < group.x[i] ? group.x[i] : most;
    }
  });
  most = BlockReduce(most, Larger(), scratch);
  float sum = 0;
  ForGroups(x, args.width, [&](int64_t k, const Four<float>& group) {
    for (int i = 0; i < kEach && k + i < args.width; ++i) {
      sum += expf(group.x[i] - most);
    }
  });
  const float shift = most + logf(BlockReduce(sum, Plus(), scratch));
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
  Launch(stream,
         {{args.rows}, static_cast<int>(warps) * kWarp, sizeof(BlockScratch)},
         LogSoftmax, args);
}

}  // namespace txl::cuda
