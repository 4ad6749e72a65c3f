#pragma once

// The rows of a step and the rings that they are stored in.

#include <cstdint>

#include "model/cuda/device/numbers.h"
#include "model/cuda/device/runtime.h"

namespace txl::cuda {

// A step's rows, arrays on the device. Rows of one slot have different
// positions. Rows with slot -1 are there for the shape of a graph only: nothing
// is read or stored for them.
struct StepRows {
  int count = 0;
  const int32_t* slot = nullptr;      // [count]
  const int64_t* position = nullptr;  // [count], absolute, >= -M
};

// One layer's stored rows of all slots: the row of absolute position t of slot
// s begins at s * slot_stride + (t mod capacity) * stride. M: float, Bf16 or
// F16.
template <typename M>
struct Rings {
  M* rows = nullptr;
  int64_t slot_stride = 0;     // numbers between two slots' first rows
  int64_t capacity = 0;        // a multiple of kRingTile
  int64_t stride = 0;          // numbers of a row, a multiple of 64
  int64_t window = 0;          // W: keys that a query sees, itself included
  int64_t first_position = 0;  // -M for a zero start, else 0
};

// Positions come in tiles of this many, which begin at its multiples and so lie
// together in a ring.
inline constexpr int kRingTile = 32;

// Which row of a ring has an absolute position t >= -M.
template <typename M>
TXL_ANYWHERE int RowOfRing(const Rings<M>& rings, int64_t t) {
  const int64_t c = rings.capacity;
  return static_cast<int>(((t % c) + c) % c);
}

// The stored row of an absolute position t >= -M.
template <typename M>
TXL_ANYWHERE M* RingRow(const Rings<M>& rings, int32_t slot, int64_t t) {
  return rings.rows + slot * rings.slot_stride +
         RowOfRing(rings, t) * rings.stride;
}

// Stores x [rows.count, x_stride], rounded, at the rows' positions. x_stride 0:
// one row for all.
template <typename M>
struct StoreArgs {
  StepRows rows;
  const float* x = nullptr;
  int64_t x_stride = 0;
  Rings<M> rings;
};

// A thread's part of storing row r: every `threads`-th number from `thread` on.
template <typename M>
TXL_ANYWHERE void StoreRow(const StoreArgs<M>& args, int r, int thread,
                           int threads) {
  const int32_t slot = args.rows.slot[r];
  if (slot < 0) return;
  const float* x = args.x + r * args.x_stride;
  M* to = RingRow(args.rings, slot, args.rows.position[r]);
  for (int64_t k = thread; k < args.rings.stride; k += threads) {
    to[k] = Narrow<M>(x[k]);
  }
}

template <typename M>
void LaunchStoreRows(Stream& stream, const StoreArgs<M>& args);

}  // namespace txl::cuda
