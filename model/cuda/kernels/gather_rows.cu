#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/elements.h"
#include "model/cuda/kernels/gather_rows.h"

namespace txl::cuda {
namespace {

template <typename T>
TXL_KERNEL_OF(kElementThreads)
GatherRows(const T* from, int64_t stride, const int32_t* index, int count,
           T* to) {
  const int64_t i = FirstElement();
  if (i >= count * stride) return;
  const int64_t r = i / stride;
  const int64_t k = i - r * stride;
  StoreGroup(to + i, LoadGroup<4>(from + index[r] * stride + k));
}

template <typename T>
TXL_KERNEL_OF(kElementThreads)
NarrowNumbers(const float* from, int64_t count, T* to) {
  const int64_t i = FirstElement();
  if (i < count) StoreGroup(to + i, LoadGroup<4>(from + i));
}

}  // namespace

template <typename T>
void LaunchGatherRows(Stream& stream, const T* from, int64_t stride,
                      const int32_t* index, int count, T* to) {
  Launch(stream, ElementShape(count * stride), GatherRows<T>, from, stride,
         index, count, to);
}

template <typename T>
void LaunchNarrow(Stream& stream, const float* from, int64_t count, T* to) {
  Launch(stream, ElementShape(count), NarrowNumbers<T>, from, count, to);
}

template void LaunchGatherRows(Stream&, const float*, int64_t, const int32_t*,
                               int, float*);
template void LaunchGatherRows(Stream&, const Bf16*, int64_t, const int32_t*,
                               int, Bf16*);
template void LaunchGatherRows(Stream&, const F16*, int64_t, const int32_t*,
                               int, F16*);
template void LaunchNarrow(Stream&, const float*, int64_t, Bf16*);
template void LaunchNarrow(Stream&, const float*, int64_t, F16*);

}  // namespace txl::cuda
