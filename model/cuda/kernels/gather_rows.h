#pragma once

// Rows that are picked out of others, and rounded.

#include <cstdint>

#include "model/cuda/device/numbers.h"
#include "model/cuda/device/runtime.h"

namespace txl::cuda {

// to[i] = from[index[i]]; rows of `stride` numbers, a multiple of 64.
template <typename T>
void LaunchGatherRows(Stream& stream, const T* from, int64_t stride,
                      const int32_t* index, int count, T* to);

// `count` numbers, a multiple of 64.
template <typename T>
void LaunchNarrow(Stream& stream, const float* from, int64_t count, T* to);

}  // namespace txl::cuda
