#pragma once

// The rows of a step: the rings that they are stored in, rows that are picked
// out of others, and what a layer begins with.

#include <cstdint>

#include "model/cuda/device/numbers.h"
#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/row_range.h"

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

// Rows that are picked out of others, and rounded (gather_rows.cu).

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

// What a layer begins with: its rows are stored, and the queries of every head
// are added up (queries.cu, docs/design/step.md).

// queries = sum over splits of partial[s], rounded
template <typename T>
struct QueryArgs {
  int64_t width = 0;               // of all heads, a multiple of 64
  const float* partial = nullptr;  // [splits, rows, width]
  int splits = 1;
  T* queries = nullptr;  // [rows, width]
};

// For the rows of `store`, which is done in the same launch (LaunchStoreRows):
// neither needs the other, and a launch more would take as long as both.
template <typename T, typename M>
void LaunchQueries(Stream& stream, const QueryArgs<T>& args,
                   const StoreArgs<M>& store);

}  // namespace txl::cuda
