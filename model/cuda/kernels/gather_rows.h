#pragma once

// Rows that are picked out of others, and rounded.

#include <cstdint>

#include "model/cuda/device/numbers.h"
#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/row_range.h"

namespace txl::cuda {

// to[i] = from[index[i]] for i < count in `range`; rows of `stride` numbers, a
// multiple of 64.
template <typename T>
struct GatherArgs {
  const T* from = nullptr;
  int64_t stride = 0;
  const int32_t* index = nullptr;  // [count]
  int count = 0;
  RowRange range = {};
  T* to = nullptr;
};

template <typename T>
void LaunchGatherRows(Stream& stream, const GatherArgs<T>& args);

// `count` numbers, a multiple of 64.
template <typename T>
void LaunchNarrow(Stream& stream, const float* from, int64_t count, T* to);

}  // namespace txl::cuda
