#pragma once

// Adaptive embedding and log-softmax (Grave et al. 2017, arXiv:1609.04309) for
// the rows of a native step. The head is evaluated for every wanted row; a
// cluster's words when someone asks for them.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "model/config/model_config.h"
#include "model/cpu/aligned_buffer.h"
#include "model/cpu/native_weights.h"
#include "model/cpu/thread_pool.h"
#include "model/sampling/distribution.h"
#include "model/step/model_step.h"

namespace txl {

// Thread-compatible. `config`, `weights` and `pool` outlive it. Allocates only
// while batches are larger than ever before.
class NativeSoftmax {
 public:
  NativeSoftmax(const ModelConfig& config, const NativeWeights& weights,
                ThreadPool& pool);
  ~NativeSoftmax();

  // Embeddings of `tokens` (each in [0, V)), scaled as the config says, into
  // rows of `out`, stride apart; numbers from d on are left alone. `ticks`: of
  // each token, where the model has beat positions.
  void Embed(absl::Span<const int32_t> tokens, absl::Span<const int32_t> ticks,
             float* out, int64_t stride);

  // Distributions of the next token: hidden [rows, d], rows `stride` apart,
  // which stay as they are until the next call. Valid until then.
  //   log P(word of cluster c) = head log P(c) + tail log P(word | c)
  absl::Span<NextTokenDistribution* const> Distributions(const float* hidden,
                                                         int64_t rows,
                                                         int64_t stride);
  void EvaluateClusters(absl::Span<const ClusterOfRow> clusters);

 private:
  class Row;

  // Embeds the tokens that rows_in_bin_ names.
  void EmbedBin(int64_t bin, absl::Span<const int32_t> tokens, float* out,
                int64_t stride);
  // Adds the rows of beat and bar.
  void AddBeats(absl::Span<const int32_t> tokens,
                absl::Span<const int32_t> ticks, float* out, int64_t stride);
  // Normalised log-probabilities of a bin's outputs for `rows` of hidden_, in
  // logits_, rows RoundUp(outputs, kPanel) apart.
  void BinLogProbs(int64_t bin, absl::Span<const int64_t> rows);
  void EvaluateCluster(size_t cluster, absl::Span<const int64_t> rows);

  const ModelConfig& config_;
  const NativeWeights& weights_;
  ThreadPool& pool_;
  VocabularyBins bins_;
  std::vector<float> gathered_, projected_, logits_;
  IntegerRows integers_;
  std::vector<int64_t> rows_in_bin_;
  const float* hidden_ = nullptr;
  int64_t stride_ = 0;
  std::vector<std::unique_ptr<Row>> rows_;  // grows; the first are in use
  std::vector<NextTokenDistribution*> result_;
};

}  // namespace txl
