#pragma once

// Adaptive log-softmax (Grave et al. 2017, arXiv:1609.04309) for the wanted
// rows of a step. The head is evaluated for every wanted row; a cluster's words
// when someone asks for them.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "model/config/model_config.h"
#include "model/cuda/device/runtime.h"
#include "model/cuda/step/cuda_bins.h"
#include "model/cuda/step/cuda_products.h"
#include "model/cuda/step/cuda_weights.h"
#include "model/sampling/distribution.h"
#include "model/step/model_step.h"

namespace txl::cuda {

// Thread-compatible; work is queued on `stream`. Every reference outlives it.
template <typename T>
class CudaSoftmax {
 public:
  struct Parts {
    const ModelConfig& config;
    const CudaWeights<T>& weights;
    CudaProducts& products;
    Stream& stream;
  };
  // `max_rows`: the most that QueueHead is called with, a multiple of
  // kLinearRows.
  CudaSoftmax(const Parts& parts, int64_t max_rows);
  ~CudaSoftmax();

  // Log-probabilities of the head for rows `wanted` [rows] (on the device) of
  // hidden [.., stride], to the host.
  void QueueHead(int rows, const T* hidden, const int32_t* wanted);

  // Once QueueHead's work is done: distributions of its first `rows` rows.
  // Valid until QueueHead's work runs again.
  //   log P(word of cluster c) = head log P(c) + tail log P(word | c)
  absl::Span<NextTokenDistribution* const> Distributions(int64_t rows);
  // Waits for the device.
  void EvaluateClusters(absl::Span<const ClusterOfRow> clusters);

 private:
  class Row;

  void EvaluateCluster(size_t cluster, absl::Span<const int32_t> rows);

  const Parts parts_;
  const VocabularyBins bins_;
  CudaBins<T> words_of_;
  Array<T> wanted_;         // [rows, stride]: the last call's rows
  Array<T> gathered_;       // [rows, stride]: those that need a cluster
  Array<float> logits_;     // [rows, outputs padded]
  Array<float> head_;       // the head's, on the host
  Array<float> tail_;       // a cluster's, on the host
  Array<int32_t> in_tail_;  // rows that need a cluster, on the host
  Array<int32_t> gathers_;  // the same on the device
  std::vector<std::unique_ptr<Row>> rows_;  // grows; the first are in use
  std::vector<NextTokenDistribution*> result_;
  std::vector<int32_t> rows_in_bin_;
};

}  // namespace txl::cuda
