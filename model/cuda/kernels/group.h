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

}  // namespace txl::cuda
