#pragma once

// Neighbouring numbers that are loaded and stored at once.

#include <cstdint>

#include "model/cuda/device/kernel.h"

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

}  // namespace txl::cuda
