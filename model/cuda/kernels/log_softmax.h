#pragma once

// Log-probabilities of logits on the device.

#include <cstdint>

#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/row_range.h"

namespace txl::cuda {

// x[r, k] -= log sum_k exp(x[r, k]) for r < rows in `range`, k < width. A NaN
// or +inf makes its whole row NaN. Then, where `index` is not null,
//   x[r, k] += add[index[r] * add_stride].
// What lies between width and stride is read, and stays as it is.
struct LogSoftmaxArgs {
  int rows = 0;
  int64_t width = 0;   // >= 1
  int64_t stride = 0;  // of rows; a multiple of 4, and x aligned to 16 bytes
  float* x = nullptr;  // [rows, stride]
  RowRange range = {};
  const int32_t* index = nullptr;  // [rows]
  const float* add = nullptr;
  int64_t add_stride = 0;
};

void LaunchLogSoftmax(Stream& stream, const LogSoftmaxArgs& args);

}  // namespace txl::cuda
