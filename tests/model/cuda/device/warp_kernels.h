#pragma once

// What model/cuda/device/warp.h computes, for a test of it.

#include <cstdint>

#include "model/cuda/device/runtime.h"

namespace txl::cuda {

struct SumAndLargest {
  double sum;
  int32_t largest;
  int32_t unused;
};

// Every thread of one block gives values[thread]; each writes down what it gets
// back. Arrays of `threads`.
struct WarpResults {
  double* warp_sum;           // WarpReduce of doubles
  double* warp_running;       // WarpRunningSum of doubles
  SumAndLargest* block_both;  // BlockReduce of values and thread numbers
  int32_t* block_before;      // BlockRunningSum of thread % 5
  int32_t* block_total;
};
void LaunchWarpFunctions(Stream& stream, int threads, const double* values,
                         const WarpResults& results);

}  // namespace txl::cuda
