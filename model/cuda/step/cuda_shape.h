#pragma once

// Sizes of a model as its device arrays have them.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/config/model_config.h"

namespace txl::cuda {

// Strides are widths padded to multiples of kLinearUnit (kernels/linear.h).
struct CudaShape {
  int layers = 0;
  int heads = 0;         // H
  int width = 0;         // d
  int stride = 0;        // of rows of d numbers
  int head_width = 0;    // D
  int head_stride = 0;   // of a head's D numbers
  int inner_stride = 0;  // of rows of F numbers
  // Distances that have a positional key of their own: 0..distances-1.
  int distances = 0;
  int distance_stride = 0;

  int query_stride() const { return heads * head_stride; }
  friend bool operator==(const CudaShape&, const CudaShape&) = default;
};

CudaShape MakeCudaShape(const ModelConfig& config);

// `width` padded.
int PaddedWidth(int64_t width);

// Numbers of rows that steps are prepared for: a graph has one shape, so a
// step of other numbers of rows runs in the next larger one.

// 1, 2, 4, 8, 16, then multiples of 16 up to 128, of 32 above; the last is at
// least max_rows and a multiple of 16. REQUIRES: max_rows >= 1.
std::vector<int> StepBuckets(int64_t max_rows);

// Index of the smallest bucket that holds `rows`, 1 <= rows <= buckets.back().
size_t BucketOf(const std::vector<int>& buckets, int64_t rows);

}  // namespace txl::cuda
