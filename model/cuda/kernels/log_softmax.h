#pragma once

// Log-probabilities of logits on the device.

#include <cstdint>

#include "model/cuda/device/runtime.h"

namespace txl::cuda {

// x[r, k] -= log sum_k exp(x[r, k]) for r < rows, k < width. A NaN or +inf
// makes its whole row NaN.
struct LogSoftmaxArgs {
  int rows = 0;
  int64_t width = 0;   // >= 1
  int64_t stride = 0;  // of rows
  float* x = nullptr;  // [rows, stride]
};

void LaunchLogSoftmax(Stream& stream, const LogSoftmaxArgs& args);

}  // namespace txl::cuda
