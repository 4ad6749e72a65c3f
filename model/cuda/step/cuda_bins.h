#pragma once

// Log-probabilities of the words of one bin of the vocabulary at a time.

#include <cstdint>

#include "model/config/model_config.h"
#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/row_range.h"
#include "model/cuda/step/cuda_products.h"
#include "model/cuda/step/cuda_weights.h"
#include "model/sampling/distribution.h"

namespace txl::cuda {

// Rows whose words are asked for. Arrays on the device.
template <typename T>
struct BinRows {
  int64_t bin = 0;
  int count = 0;
  const T* x = nullptr;       // [count, stride]
  float* logprobs = nullptr;  // [count, outputs padded]
  // Rows that only the device knows the number of; the others' numbers are
  // left alone.
  RowRange range = {};
  // What is added to the words of row i: masses[rows[i] * mass_stride]. Null:
  // nothing.
  const int32_t* rows = nullptr;  // [count]
  const float* masses = nullptr;
  int64_t mass_stride = 0;
};

// Thread-compatible; work is queued on `stream`. Every reference outlives it.
template <typename T>
class CudaBins {
 public:
  // `max_rows`: the most that Queue is called with, as kernels/linear.h wants.
  CudaBins(const CudaWeights<T>& weights, int64_t max_rows,
           CudaProducts& products, Stream& stream);

  // Normalised over the bin's outputs: its words and, in bin 0, the clusters.
  void Queue(const BinRows<T>& rows);

 private:
  const CudaWeights<T>& weights_;
  CudaProducts& products_;
  Stream& stream_;
  Array<T> projected_;  // [max_rows, widest bin with a projection]
};

}  // namespace txl::cuda
