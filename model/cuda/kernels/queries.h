#pragma once

// The two queries of every head: against the stored rows and against the
// positional keys (docs/ARCHITECTURE.md, "One step").

#include <cstdint>

#include "model/cuda/device/numbers.h"
#include "model/cuda/device/runtime.h"

namespace txl::cuda {

// q           = sum over splits of partial[s]
// content     = q + content_bias,   rounded: q_n + u_n
// positional  = q + position_bias,  rounded: q_n + v_n
template <typename T>
struct QueryArgs {
  int rows = 0;
  int64_t width = 0;               // of all heads, a multiple of 64
  const float* partial = nullptr;  // [splits, rows, width]
  int splits = 1;
  const float* content_bias = nullptr;   // [width]
  const float* position_bias = nullptr;  // [width]
  T* content = nullptr;                  // [rows, width]
  T* positional = nullptr;               // [rows, width]
};

template <typename T>
void LaunchQueries(Stream& stream, const QueryArgs<T>& args);

}  // namespace txl::cuda
