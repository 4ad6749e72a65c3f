#pragma once

// One block's part of storing a step's rows; for .cu files only.

#include <cstdint>

#include "model/cuda/device/kernel.h"
#include "model/cuda/kernels/rows.h"

namespace txl::cuda {

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
