#pragma once

// Rows that are picked out of others, and rounded.

#include <cstdint>

#include "model/cuda/device/kernel.h"
#include "model/cuda/device/numbers.h"
#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/row_range.h"
#include "model/cuda/kernels/rows.h"

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

// One block's part of storing a step's rows; for .cu files only.

// Row r, by all threads of the block.
template <typename M>
TXL_DEVICE void StoreRow(const StoreArgs<M>& args, int r) {
  const int32_t slot = args.rows.slot[r];
  if (slot < 0) return;
  const float* x = args.x + r * args.x_stride;
  M* to = RingRow(args.rings, slot, args.rows.position[r]);
  for (int64_t k = Thread(); k < args.rings.stride; k += Threads()) {
    to[k] = Narrow<M>(x[k]);
  }
}

}  // namespace txl::cuda
