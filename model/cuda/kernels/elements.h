#pragma once

// Kernels that treat every number alike: four neighbours per thread, loaded and
// stored at once. For .cu files only.

#include <cstdint>

#include "model/cuda/device/kernel.h"
#include "model/cuda/kernels/group.h"

namespace txl::cuda {

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
