#pragma once

// Four neighbouring numbers, loaded and stored at once.

#include <cstdint>

#include "model/cuda/device/kernel.h"

namespace txl::cuda {

template <typename T>
struct alignas(4 * sizeof(T)) Four {
  T x[4] = {};
};

// `from` and `to` are aligned to four numbers.
template <typename T>
TXL_DEVICE Four<float> LoadFour(const T* from) {
  const Four<T> stored = *reinterpret_cast<const Four<T>*>(from);
  Four<float> four;
  for (int i = 0; i < 4; ++i) four.x[i] = Widen(stored.x[i]);
  return four;
}
template <typename T>
TXL_DEVICE void StoreFour(T* to, const Four<float>& four) {
  Four<T> stored;
  for (int i = 0; i < 4; ++i) stored.x[i] = Narrow<T>(four.x[i]);
  *reinterpret_cast<Four<T>*>(to) = stored;
}

}  // namespace txl::cuda
