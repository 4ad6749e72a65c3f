#pragma once

// LayerNorm (arXiv:1607.06450) on the device, alone and behind a product whose
// sums were split.

#include <cstdint>

#include "model/cuda/device/numbers.h"
#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/linear.h"

namespace txl::cuda {

// x[r]  = sum over splits of partial[s][r] + bias + residual[r], or wide_in[r]
//         where `partial` is null; columns < width; goes to `sum` if that is
//         not null (it may be wide_in or residual)
// y[r]  = (x - mean) / sqrt(variance + eps) * gain + shift
// y goes to `wide`, to `narrow` rounded, or both. Columns from width to stride
// are written as zeros. With gain null there is no norm: y = x. All arrays are
// aligned to 16 bytes. No kernel of the stream writes bias, gain or shift: they
// are read before it has ended.
template <typename T>
struct NormArgs {
  int rows = 0;
  int width = 0;                   // d
  int64_t stride = 0;              // of all rows; a multiple of kLinearUnit
  const float* partial = nullptr;  // [splits, rows, stride]
  int splits = 0;
  LinearActivation activation = LinearActivation::kNone;  // of sums and bias
  const float* bias = nullptr;                            // [stride]
  const float* residual = nullptr;                        // [rows, stride]
  const float* wide_in = nullptr;                         // [rows, stride]
  float* sum = nullptr;                                   // [rows, stride]
  const float* gain = nullptr;                            // [stride]
  const float* shift = nullptr;                           // [stride]
  float eps = 0;
  float* wide = nullptr;  // [rows, stride]; may be wide_in or residual
  T* narrow = nullptr;    // [rows, stride]
};

template <typename T>
void LaunchNorm(Stream& stream, const NormArgs<T>& args);

}  // namespace txl::cuda
