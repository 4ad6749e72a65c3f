#pragma once

// All layers of a step on its rows.

#include <cstdint>
#include <vector>

#include "model/config/model_config.h"
#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/norm.h"
#include "model/cuda/step/cuda_arena.h"
#include "model/cuda/step/cuda_attention.h"
#include "model/cuda/step/cuda_products.h"
#include "model/cuda/step/cuda_weights.h"

namespace txl::cuda {

// T: how weights are stored, M: stored rows. Thread-compatible; work is queued
// on `stream`. Every reference outlives it.
template <typename T, typename M>
class CudaLayers {
 public:
  struct Parts {
    const ModelConfig& config;
    const CudaWeights<T>& weights;
    const CudaArena<M>& arena;
    CudaProducts& products;
    Stream& stream;
  };
  // `buckets`: numbers of rows that Queue is called with.
  CudaLayers(const Parts& parts, const std::vector<int>& buckets);

  // The rows of a step, [rows, stride], zeros from d on: embeddings before
  // Queue, float32 and rounded.
  float* hidden() { return hidden_.data(); }
  T* narrow_hidden() { return narrow_in_.data(); }

  // Feeds the rows and writes them into the rings.
  void Queue(const StepRows& rows);

  // What the last layer gives, behind the final norm if the model has one,
  // rounded: [rows, stride].
  const T* out() const { return narrow_in_.data(); }

 private:
  // The halves of a layer. In: in() and narrow_in_, what the layer stores and
  // projects, and hidden_, what it adds to. Out: the same of the next layer.
  void QueueAttention(const CudaLayer<T>& layer, int index,
                      const StepRows& rows);
  void QueueFeedForward(const CudaLayer<T>& layer, int index,
                        const StepRows& rows);
  // Norm that follows layer `index`, -1: the embeddings. Null: none.
  const DeviceNorm* NormAfter(int index) const;
  NormArgs<T> Norm(int rows, const DeviceNorm* norm) const;

  bool pre_norm() const { return parts_.config.norm == NormPlacement::kPre; }
  // Post-norm: the layer's input is what it adds to.
  float* in() { return pre_norm() ? in_.data() : hidden_.data(); }

  const Parts parts_;
  const CudaShape shape_;
  CudaAttention<T, M> attention_;
  Array<float> hidden_;     // [rows, stride]
  Array<float> in_;         // [rows, stride]; pre-norm only
  Array<T> narrow_in_;      // [rows, stride]
  Array<float> middle_;     // [rows, stride]: post-norm, behind ln1
  Array<T> narrow_middle_;  // [rows, stride]: what the feed-forward part gets
  Array<T> inner_;          // [rows, inner_stride]
};

}  // namespace txl::cuda
