#pragma once

// Embeddings of a step's tokens: adaptive ones (arXiv:1809.10853) bin by bin,
// each word in its own bin's width, projected to d.

#include <cstdint>

#include "model/config/model_config.h"
#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/words.h"
#include "model/cuda/step/cuda_products.h"
#include "model/cuda/step/cuda_weights.h"

namespace txl::cuda {

// What rows feed, on the device.
struct FedTokens {
  const int32_t* ids = nullptr;    // [rows], each in [0, V)
  const int32_t* ticks = nullptr;  // [rows], of a model with beat positions
};

// Thread-compatible; work is queued on `stream`. Every reference outlives it.
template <typename T>
class CudaEmbedding {
 public:
  // `max_rows`: the most that Queue is called with, as kernels/linear.h wants.
  CudaEmbedding(const ModelConfig& config, const CudaWeights<T>& weights,
                int64_t max_rows, CudaProducts& products, Stream& stream);

  // Embeddings of the tokens, scaled as the config says: `wide` and, rounded,
  // `narrow`, [rows, stride], zeros from d on.
  void Queue(int rows, const FedTokens& tokens, float* wide, T* narrow);

 private:
  BinWords<T> Words(int64_t bin, int rows, const int32_t* tokens) const;

  const ModelConfig& config_;
  const CudaWeights<T>& weights_;
  CudaProducts& products_;
  Stream& stream_;
  Array<T> found_;  // [max_rows, widest bin with a projection]
};

}  // namespace txl::cuda
