#pragma once

// Kernels that treat every number alike: kVector neighbours per thread, moved
// at once. For .cu files only.

#include <cstdint>

#include "model/cuda/device/kernel.h"

namespace txl::cuda {

inline constexpr int kVector = 4;
inline constexpr int kVectorThreads = 128;

template <typename T>
struct alignas(kVector * sizeof(T)) Vector {
  T at[kVector];
};

// REQUIRES: aligned to kVector numbers.
template <typename T>
TXL_DEVICE Vector<T> LoadVector(const T* from) {
  return *reinterpret_cast<const Vector<T>*>(from);
}
template <typename T>
TXL_DEVICE void StoreVector(T* to, const Vector<T>& vector) {
  *reinterpret_cast<Vector<T>*>(to) = vector;
}
template <typename T>
TXL_DEVICE void StoreNarrow(T* to, const Vector<float>& vector) {
  Vector<T> narrow;
  for (int k = 0; k < kVector; ++k) narrow.at[k] = Narrow<T>(vector.at[k]);
  StoreVector(to, narrow);
}

// The first number of the running thread.
TXL_DEVICE int64_t VectorIndex() {
  return (static_cast<int64_t>(BlockX()) * Threads() + Thread()) * kVector;
}

// Of a launch for `count` numbers, a multiple of kVector.
inline LaunchShape VectorShape(int64_t count) {
  constexpr int64_t kPerBlock = kVector * kVectorThreads;
  return {{static_cast<int>((count + kPerBlock - 1) / kPerBlock)},
          kVectorThreads};
}

}  // namespace txl::cuda
