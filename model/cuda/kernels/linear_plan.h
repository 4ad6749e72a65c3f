#pragma once

// How a product is cut into blocks of threads. Follows from its shape alone.

#include "model/cuda/kernels/linear.h"

namespace txl::cuda {

// kStream: few rows. What takes time is reading the weights: every warp reads
// its own, and the warps of a block share the inputs among themselves.
// kTiles: many rows. The warps of a block share what they read.
enum class LinearKernel { kStream, kTiles };

struct LinearPlan {
  LinearKernel kernel = LinearKernel::kStream;
  int rows = 16;        // of a block: 16 or 32 (kStream), 64 or 128 (kTiles)
  int outputs = 32;     // of a block
  int input_warps = 1;  // kStream: warps that share the inputs, 1, 2 or 4
};

LinearPlan PlanLinear(const LinearShape& shape);

}  // namespace txl::cuda
