#pragma once

// The model's distribution of the next token, evaluated as far as someone asks:
// with an adaptive softmax (arXiv:1609.04309) the head tells the probabilities
// of the first bin's words and of whole clusters; a cluster's words cost a
// product over its part of the vocabulary.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace txl {

// The shape of the vocabulary: ends of the adaptive softmax's bins, strictly
// increasing, > 0, last = V. One bin: a plain softmax.
struct VocabularyBins {
  std::vector<int64_t> ends;

  size_t clusters() const { return ends.size() - 1; }
  // Ids of cluster c: [ends[c], ends[c + 1]).
  int64_t cluster_size(size_t c) const { return ends[c + 1] - ends[c]; }
  // Bin of an id in [0, V): 0, or c + 1 for cluster c.
  size_t BinOf(int64_t id) const {
    return static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), id) -
                               ends.begin());
  }
};

// Thread-compatible. All numbers are natural log-probabilities; NaN and +inf
// can occur (a model whose numbers ran away) and are for the caller to find.
class NextTokenDistribution {
 public:
  virtual ~NextTokenDistribution() = default;

  virtual const VocabularyBins& bins() const = 0;
  // Log-probabilities of the words of bin 0, [ends[0]].
  virtual absl::Span<const float> Words() = 0;
  // Log-probability of all words of cluster c together. Every word's own is at
  // most this, up to rounding.
  virtual double ClusterMass(size_t c) = 0;
  // Log-probabilities of the words of cluster c, [cluster_size(c)]. Evaluates
  // them on the first call. Valid as long as the distribution.
  virtual absl::Span<const float> ClusterWords(size_t c) = 0;
  // Whether the words of cluster c have been evaluated.
  virtual bool IsEvaluated(size_t c) const = 0;
};

// A distribution that is known whole: `logprobs` [V] and `bins` outlive it.
class FullDistribution final : public NextTokenDistribution {
 public:
  FullDistribution(absl::Span<const float> logprobs, const VocabularyBins& bins)
      : logprobs_(logprobs), bins_(bins) {}

  const VocabularyBins& bins() const override { return bins_; }
  absl::Span<const float> Words() override {
    return logprobs_.first(bins_.ends[0]);
  }
  // The log of the sum of its words' probabilities.
  double ClusterMass(size_t c) override;
  absl::Span<const float> ClusterWords(size_t c) override {
    return logprobs_.subspan(bins_.ends[c], bins_.cluster_size(c));
  }
  bool IsEvaluated(size_t) const override { return true; }

 private:
  absl::Span<const float> logprobs_;
  const VocabularyBins& bins_;
};

// log P(id). REQUIRES: 0 <= id < V.
float LogprobOf(NextTokenDistribution& distribution, int32_t id);

struct TokenLogprob {
  int32_t token_id = 0;
  float logprob = 0;  // natural log, the model's own distribution
};

// The `count` most probable ids (all, when there are fewer), most probable
// first, equal ones by id. NaN is left out. Clusters that can hold none of
// them are not evaluated.
std::vector<TokenLogprob> TopLogprobs(NextTokenDistribution& distribution,
                                      int count);

// Appends log P of `ids`, in their order. REQUIRES: each in [0, V).
void AppendLogprobs(NextTokenDistribution& distribution,
                    absl::Span<const int32_t> ids,
                    std::vector<TokenLogprob>& out);

// Log-probabilities of words and clusters are rounded apart: a cluster whose
// mass is below a bound by more than this holds no word above it.
inline constexpr double kMassGuard = 1e-4;

}  // namespace txl
