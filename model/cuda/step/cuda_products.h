#pragma once

// Products of a step's rows with weights, cut so that they fill the device, and
// the memory for the sums of the pieces.

#include <cstdint>
#include <vector>

#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/linear.h"
#include "model/cuda/step/cuda_weights.h"

namespace txl::cuda {

// A product for some rows: y = act(x w + bias) + residual, per head where the
// matrix is one per head. x, y and residual are [rows, batch, inputs or
// outputs]; null operands are left out. With `rest`, y is [rows, batch,
// rest_from], and what follows goes there (kernels/linear.h).
template <typename T>
struct RowProduct {
  const DeviceMatrix<T>& w;
  const T* x = nullptr;
  const float* bias = nullptr;
  const float* residual = nullptr;
  LinearActivation activation = LinearActivation::kNone;
  float* wide = nullptr;
  T* narrow = nullptr;
  float* rest = nullptr;
  int rest_from = 0;
  RowRange range = {};
};

// Thread-compatible; work is queued on `stream`, which outlives it.
class CudaProducts {
 public:
  // `sums_size`: the most of those.
  CudaProducts(Stream& stream, int processors, int64_t sums_size)
      : stream_(stream),
        processors_(processors),
        sums_(MemoryKind::kDevice, sums_size) {}

  template <typename T>
  void Multiply(int rows, const RowProduct<T>& product);

  // x w alone, in pieces. The kernel that adds the bias and the rest sums them
  // up first.
  struct Pieces {
    const float* sums = nullptr;  // [splits, rows, batch, outputs]
    int splits = 1;
  };
  // Valid until the next product that is queued.
  template <typename T>
  Pieces MultiplyInPieces(int rows, const DeviceMatrix<T>& w, const T* x);

 private:
  Stream& stream_;
  const int processors_;
  Array<float> sums_;
};

// The most that any product of a step needs, whichever bucket it runs in.
template <typename T>
int64_t MostSums(const CudaWeights<T>& weights, const std::vector<int>& buckets,
                 int processors);

}  // namespace txl::cuda
