#pragma once

// The trained weights on the device, in absorbed form; tied ones once in
// memory.
//
// A head's D numbers take head_stride of them wherever heads follow each other
// (queries, values), so that every head's part of a product is padded by
// itself.

#include <optional>
#include <vector>

#include "model/config/model_config.h"
#include "model/cuda/step/cuda_shape.h"
#include "model/cuda/step/weight_upload.h"

namespace txl {
struct Weights;
}

namespace txl::cuda {

struct DeviceNorm {
  Array<float> gain, shift;  // [stride]
};

// H heads of head_stride numbers are written [H, Dp], padded d as dp. Biases
// that the model does not have are arrays without numbers.
template <typename T>
struct CudaLayer {
  DeviceMatrix<T> wq;  // [H Dp, dp], without its bias, which is in key_bias
  // What a head's query q_n meets: Wk_n turned, [dp, Dp], and behind it the
  // positional keys Wr_n R (or the table's rows) by distance,
  // [distance_stride, Dp].
  DeviceMatrix<T> keys;
  // What the query's biases make of them, [H, dp + distance_stride]:
  // (bq_n + u_n) Wk_n, then (bq_n + v_n) Wr_n R (or bq_n with the table's rows,
  // and the table's biases).
  Array<float> key_bias;
  DeviceMatrix<T> absorbed_values;  // per head: Wv_n, [Dp, dp]
  Array<float> value_bias;          // [H, Dp]
  DeviceMatrix<T> wo;               // [dp, H Dp]
  Array<float> bo;
  DeviceNorm ln1, ln2;
  DeviceMatrix<T> ff_w1, ff_w2;
  Array<float> ff_b1, ff_b2;
};

template <typename T>
struct CudaBin {
  // Words of the bin and, in bin 0, the clusters after them.
  DeviceMatrix<T> words;  // [outputs padded, e_b padded]
  int outputs = 0;
  Array<float> bias;         // [outputs padded]
  DeviceMatrix<T> out_proj;  // [e_b, d] padded
  DeviceMatrix<T> in_proj;   // [d, e_b] padded
  // Embeddings of an untied model; no matrix: rows of `words`.
  DeviceMatrix<T> embedding;

  const DeviceMatrix<T>& table() const {
    return embedding.exists() ? embedding : words;
  }
};

template <typename T>
struct CudaWeights {
  CudaShape shape;
  std::vector<CudaLayer<T>> layers;
  std::vector<CudaBin<T>> bins;
  std::optional<DeviceNorm> final_norm;
};

// T: float, Bf16 or F16. REQUIRES: weights are float32 on the CPU and fit
// config. Throws what device/runtime.h throws.
template <typename T>
CudaWeights<T> UploadWeights(const ModelConfig& config, const Weights& weights);

}  // namespace txl::cuda
