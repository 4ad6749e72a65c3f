#pragma once

// The trained weights on the device, in absorbed form; tied ones once in
// memory.
//
// A head's D numbers take head_stride of them wherever heads follow each other
// (queries, values), so that every head's part of a product is padded by
// itself.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "model/config/model_config.h"
#include "model/cuda/device/numbers.h"
#include "model/cuda/device/runtime.h"
#include "model/cuda/step/cuda_shape.h"

namespace txl {

struct Weights;
}

namespace txl::cuda {

// From LibTorch tensors on the host to padded arrays on the device.

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
  // Tables of beat positions: [bar_ticks, stride], [bars, stride]; or empty.
  Array<float> beat, bar;
  std::optional<DeviceNorm> final_norm;
};

// T: float, Bf16 or F16. REQUIRES: weights are float32 on the CPU and fit
// config. Throws what device/runtime.h throws.
template <typename T>
CudaWeights<T> UploadWeights(const ModelConfig& config, const Weights& weights);

}  // namespace txl::cuda
