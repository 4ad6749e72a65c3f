#pragma once

// From the last layer's rows to tokens, on the device alone: the head for every
// wanted row, the sampling of kernels/sampling.h, and the words of the clusters
// for the rows that need them.
//
// Numbers of the vocabulary's size are only kept for some rows at a time: a
// pass. A step with more wanted rows has several passes, one behind another;
// every pass reads the weights of the words again. So a pass is as large as
// memory allows: PassRows.

#include <cstdint>
#include <vector>

#include "model/config/model_config.h"
#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/sampling.h"
#include "model/cuda/step/cuda_bins.h"
#include "model/cuda/step/cuda_products.h"
#include "model/cuda/step/cuda_weights.h"
#include "model/cuda/step/step_input.h"
#include "model/cuda/step/step_results.h"
#include "model/sampling/token_kinds.h"

namespace txl::cuda {

// More rounds evaluate fewer clusters, where a draw at another temperature than
// 1, or with banned words, is refused; but every step pays for every round's
// launches, which is more.
inline constexpr int kSamplingRounds = 1;

// Device memory for one row of a pass.
int64_t PassRowBytes(const ModelConfig& config, const SamplingLimits& limits);

// The most rows of a pass for which there are `bytes`: one of `buckets`, 16 at
// least.
int PassRows(const std::vector<int>& buckets, int64_t row_bytes, int64_t bytes);

// Threads of a block that samples: enough to keep the words of the largest bin
// on their way. 64 to kSamplingThreads, a power of two.
int ThreadsForSampling(const VocabularyBins& bins);

// Thread-compatible; work is queued on `stream`. Every reference outlives it.
template <typename T>
class CudaSampling {
 public:
  struct Parts {
    const CudaWeights<T>& weights;
    CudaProducts& products;
    const StepInput& input;
    const StepResults& results;
    const SamplingSlots& slots;
    const TokenKinds* kinds;  // null: the model has none
    Stream& stream;
  };
  // REQUIRES: at most kMaxSampledClusters clusters; pass_rows of PassRows.
  CudaSampling(const Parts& parts, const VocabularyBins& bins, int pass_rows);

  // Queues the first `wanted` wanted rows of the step's rows x [.., stride];
  // what becomes of them goes to the results. `with_top`: with the best and
  // named words.
  void Queue(int wanted, const StepRows& rows, const T* x, bool with_top);

  // Passes of so many wanted rows; each writes the ends of its clusters' lists
  // into the results, [passes, clusters].
  int64_t Passes(int64_t wanted) const {
    return (wanted + pass_rows_ - 1) / pass_rows_;
  }

 private:
  // Wanted rows first..first + count - 1.
  struct Pass {
    int first = 0;
    int count = 0;
  };
  SamplingArgs Args(const Pass& pass, bool with_top) const;
  void QueuePass(const SamplingArgs& args);
  // The words of a cluster, for the rows of its list's last part.
  void QueueCluster(int cluster, const SamplingArgs& args);

  const Parts parts_;
  const VocabularyBins bins_;
  const int pass_rows_;
  const int rounds_;
  CudaBins<T> words_of_;
  // What a pass knows of its wanted rows.
  Array<int32_t> index_, slot_;
  Array<int64_t> position_;
  Array<T> hidden_;                     // [pass_rows, stride]
  Array<T> listed_;                     // those of a cluster's list
  Array<float> head_;                   // [pass_rows, outputs padded]
  std::vector<Array<float>> clusters_;  // as head_, one for each cluster
  Array<SamplingRowState> states_;      // [pass_rows]
  Array<AdjustedWord> adjusted_;        // kernels/sampling.h
  Array<int> finished_blocks_;          // [1]
  Array<uint8_t> kinds_;                // kernels/sampling.h
  Array<KindRule> rules_;
  Array<int32_t> list_rows_, list_places_;  // [clusters, pass_rows]
  Array<int32_t> list_begins_;              // [clusters]
};

}  // namespace txl::cuda
