#pragma once

// Neighbouring numbers that are loaded and stored at once. For .cu files only.

#include <cstdint>

#include "model/cuda/device/kernel.h"
#include "model/cuda/device/launch_shape.h"
#include "model/cuda/device/numbers.h"

namespace txl::cuda {

template <typename T, int kCount>
struct alignas(kCount * sizeof(T)) Group {
  T x[kCount] = {};
};
template <typename T>
using Four = Group<T, 4>;

// `from` and `to` are aligned to kCount numbers.
template <int kCount, typename T>
TXL_DEVICE Group<float, kCount> LoadGroup(const T* from) {
  const auto stored = *reinterpret_cast<const Group<T, kCount>*>(from);
  Group<float, kCount> group;
  for (int i = 0; i < kCount; ++i) group.x[i] = Widen(stored.x[i]);
  return group;
}
template <typename T, int kCount>
TXL_DEVICE void StoreGroup(T* to, const Group<float, kCount>& group) {
  Group<T, kCount> stored;
  for (int i = 0; i < kCount; ++i) stored.x[i] = Narrow<T>(group.x[i]);
  *reinterpret_cast<Group<T, kCount>*>(to) = stored;
}

template <int kCount>
TXL_DEVICE void Add(Group<float, kCount>& sum, const Group<float, kCount>& x) {
  for (int i = 0; i < kCount; ++i) sum.x[i] += x.x[i];
}

// `count` groups, `distance` numbers apart, in their order. Several are on
// their way at a time: each alone would take as long as memory takes to answer.
template <int kCount>
TXL_DEVICE Group<float, kCount> SumOfPieces(const float* first,
                                            int64_t distance, int count) {
  constexpr int kAhead = 4;
  Group<float, kCount> sum;
  for (int i = 0; i < count; i += kAhead) {
    Group<float, kCount> pieces[kAhead];
    TXL_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      if (i + k >= count) continue;
      pieces[k] = LoadGroup<kCount>(first + (i + k) * distance);
    }
    TXL_UNROLL
    for (int k = 0; k < kAhead; ++k) Add(sum, pieces[k]);
  }
  return sum;
}

// Kernels that treat every number alike: four neighbours per thread.

inline constexpr int kElementThreads = 128;
inline constexpr int kElementsEach = 4;

// The first number of the running thread.
TXL_DEVICE int64_t FirstElement() {
  return (static_cast<int64_t>(BlockX()) * kElementThreads + Thread()) *
         kElementsEach;
}

// The shape of a launch for `count` numbers, a multiple of kElementsEach.
inline LaunchShape ElementShape(int64_t count) {
  constexpr int64_t kPerBlock = kElementsEach * kElementThreads;
  return {{static_cast<int>((count + kPerBlock - 1) / kPerBlock)},
          kElementThreads};
}

}  // namespace txl::cuda
