#pragma once

// From LibTorch tensors on the host to padded arrays on the device.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/cuda/device/numbers.h"
#include "model/cuda/device/runtime.h"

namespace txl::cuda {

// A weight matrix, or one per head, as kernels/linear.h wants them.
template <typename T>
struct DeviceMatrix {
  Array<T> numbers;  // [batch, outputs, inputs]
  int batch = 0;     // 0: there is no such matrix
  int outputs = 0;   // padded
  int inputs = 0;    // padded
  bool exists() const { return batch != 0; }
};

// Zeros behind dimension `dim` of t, up to a size of `size`.
at::Tensor PadTo(const at::Tensor& t, int64_t dim, int64_t size);

// Thread-compatible. Arrays are complete when a call returns. Throws what
// device/runtime.h throws.
class WeightUpload {
 public:
  // [batch, outputs, inputs] or [outputs, inputs], float32; padded and rounded
  // to nearest, ties to even. Undefined: no matrix.
  template <typename T>
  DeviceMatrix<T> Matrix(const at::Tensor& t);
  // float32 of any shape, as it is. Undefined: an array without numbers.
  Array<float> Numbers(const at::Tensor& t);

 private:
  Stream stream_;
};

}  // namespace txl::cuda
