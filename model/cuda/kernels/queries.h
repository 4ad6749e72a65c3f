#pragma once

// What a layer begins with: its rows are stored, and the queries of every head
// are added up (docs/design/step.md).

#include <cstdint>

#include "model/cuda/device/numbers.h"
#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/rows.h"

namespace txl::cuda {

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
