#pragma once

// What every step on a CUDA device is made of: weights, the memories of the
// slots, and the layers, on one stream.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "model/config/model_config.h"
#include "model/cuda/device/runtime.h"
#include "model/cuda/step/cuda_arena.h"
#include "model/cuda/step/cuda_embedding.h"
#include "model/cuda/step/cuda_layers.h"
#include "model/cuda/step/cuda_products.h"
#include "model/cuda/step/cuda_step_options.h"
#include "model/cuda/step/cuda_weights.h"
#include "model/cuda/step/state_lanes.h"
#include "model/memory/state_image.h"

namespace txl::cuda {

// The ring of a slot.
RingGeometry MakeRing(const ModelConfig& config, int64_t spare_rows);

// T: how weights are stored, M: stored rows. Thread-compatible. Slots and
// positions are checked by the caller. Throws what device/runtime.h throws.
template <typename T, typename M>
class CudaModel {
 public:
  // REQUIRES: CheckOptions. `lanes`: of StateLanes.
  CudaModel(const ModelConfig& config, const Weights& weights,
            const CudaStepOptions& options, int lanes);
  // Waits for all work.
  ~CudaModel();

  // Makes the model's device the one of this thread's calls.
  void Use() const { UseDevice(device_); }

  // Feeds the rows.
  void QueueLayers(const StepRows& rows, const FedTokens& tokens);
  // What comes out of the last layer, [rows, stride].
  const T* out() const { return layers_.out(); }

  // ModelStep's.
  void Clear(int32_t slot);
  void Copy(int32_t from, int32_t to);
  StateLanes<M>& states() { return states_; }

  const ModelConfig& config() const { return config_; }
  const CudaWeights<T>& weights() const { return weights_; }
  const CudaArena<M>& arena() const { return arena_; }
  const StateIdentity& identity() const { return identity_; }
  // Numbers of rows that steps are prepared for.
  const std::vector<int>& buckets() const { return buckets_; }
  int max_rows() const { return buckets_.back(); }
  CudaProducts& products() { return products_; }
  Stream& stream() { return stream_; }

  // A graph of what `queue` queues. It runs once before: a device may load a
  // kernel when it first runs, which a capture does not allow. Done on return.
  std::unique_ptr<Graph> Capture(absl::FunctionRef<void()> queue);

 private:
  const ModelConfig config_;
  const int device_;
  const std::vector<int> buckets_;
  Stream stream_;  // of all computation
  const CudaWeights<T> weights_;
  CudaArena<M> arena_;
  const StateIdentity identity_;
  StateLanes<M> states_;
  CudaProducts products_;
  CudaEmbedding<T> embedding_;
  CudaLayers<T, M> layers_;
};

// make.operator()<T, M>() for the formats of the options.
template <typename Make>
auto WithFormats(const CudaStepOptions& options, const Make& make) {
  const auto with_memory = [&]<typename T>() {
    switch (options.memory) {
      case NumberFormat::kBF16:
        return make.template operator()<T, Bf16>();
      case NumberFormat::kF16:
        return make.template operator()<T, F16>();
      default:
        return make.template operator()<T, float>();
    }
  };
  switch (options.weights) {
    case NumberFormat::kBF16:
      return with_memory.template operator()<Bf16>();
    case NumberFormat::kF16:
      return with_memory.template operator()<F16>();
    default:
      return with_memory.template operator()<float>();
  }
}

}  // namespace txl::cuda
