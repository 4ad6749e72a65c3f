#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/rows.h"

namespace txl::cuda {
namespace {

constexpr int kThreads = 128;

// One block per row.
template <typename M>
TXL_KERNEL StoreRow(StepRows rows, const float* x, int64_t x_stride,
                    Rings<M> rings) {
  AwaitEarlierKernels();
  const int r = BlockX();
  const int32_t slot = rows.slot[r];
  if (slot < 0) return;
  M* to = RingRow(rings, slot, rows.position[r]);
  for (int64_t k = Thread(); k < rings.stride; k += Threads()) {
    to[k] = Narrow<M>(x[r * x_stride + k]);
  }
}

}  // namespace

template <typename M>
void LaunchStoreRows(Stream& stream, const StepRows& rows, const float* x,
                     int64_t x_stride, const Rings<M>& rings) {
  Launch(stream, {{rows.count}, kThreads}, StoreRow<M>, rows, x, x_stride,
         rings);
}

template void LaunchStoreRows(Stream&, const StepRows&, const float*, int64_t,
                              const Rings<float>&);
template void LaunchStoreRows(Stream&, const StepRows&, const float*, int64_t,
                              const Rings<Bf16>&);
template void LaunchStoreRows(Stream&, const StepRows&, const float*, int64_t,
                              const Rings<F16>&);

}  // namespace txl::cuda
