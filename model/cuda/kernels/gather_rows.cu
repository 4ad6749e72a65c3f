#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/group.h"
#include "model/cuda/kernels/rows.h"

namespace txl::cuda {
namespace {

template <typename T>
TXL_KERNEL_OF(kElementThreads)
GatherRows(GatherArgs<T> args) {
  AwaitEarlierKernels();
  const int64_t i = FirstElement();
  const int64_t r = i / args.stride;
  if (!SpanOf(args.range, args.count).Contains(static_cast<int>(r))) return;
  const int64_t k = i - r * args.stride;
  StoreGroup(args.to + i,
             LoadGroup<4>(args.from + args.index[r] * args.stride + k));
}

template <typename T>
TXL_KERNEL_OF(kElementThreads)
NarrowNumbers(const float* from, int64_t count, T* to) {
  AwaitEarlierKernels();
  const int64_t i = FirstElement();
  if (i < count) StoreGroup(to + i, LoadGroup<4>(from + i));
}

}  // namespace

template <typename T>
void LaunchGatherRows(Stream& stream, const GatherArgs<T>& args) {
  Launch(stream, ElementShape(args.count * args.stride), GatherRows<T>, args);
}

template <typename T>
void LaunchNarrow(Stream& stream, const float* from, int64_t count, T* to) {
  Launch(stream, ElementShape(count), NarrowNumbers<T>, from, count, to);
}

template void LaunchGatherRows(Stream&, const GatherArgs<float>&);
template void LaunchGatherRows(Stream&, const GatherArgs<Bf16>&);
template void LaunchGatherRows(Stream&, const GatherArgs<F16>&);
template void LaunchNarrow(Stream&, const float*, int64_t, Bf16*);
template void LaunchNarrow(Stream&, const float*, int64_t, F16*);

namespace {

constexpr int kThreads = 128;

// One block per row.
template <typename M>
TXL_KERNEL StoreRows(StoreArgs<M> args) {
  AwaitEarlierKernels();
  StoreRow(args, BlockX(), Thread(), Threads());
}

}  // namespace

template <typename M>
void LaunchStoreRows(Stream& stream, const StoreArgs<M>& args) {
  Launch(stream, {{args.rows.count}, kThreads}, StoreRows<M>, args);
}

template void LaunchStoreRows(Stream&, const StoreArgs<float>&);
template void LaunchStoreRows(Stream&, const StoreArgs<Bf16>&);
template void LaunchStoreRows(Stream&, const StoreArgs<F16>&);

}  // namespace txl::cuda
