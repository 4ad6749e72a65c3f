#pragma once

// The definition of a sampled token: a pure function of (distribution,
// parameters, recent ids, seed, absolute position). Nothing else enters, so a
// session's text does not depend on other streams.
//
// Order: allowed ids -> kinds -> bias -> penalties -> temperature -> top_k ->
// top_p -> min_p -> typical_p -> draw. Formulas: draws in draw.h and
// cluster_draw.h, everything before them in candidate_filter.h. All sums are in
// double precision.
//   allowed_token_ids, unless empty: any other id has log-probability -inf.
//   follow_kinds, behind an id: what the rule of its kind does not allow has
//     log-probability -inf, and the temperature is the request's times the
//     rule's (token_kinds.h).
//   Temperature 0: the id of the largest log-probability after bias, penalties
//     and bans, the lowest of equal ones; no random number is used.
//   UsesJointDistribution(params): the filters leave candidates with weights;
//     draw 0 picks one by PickByWeight in ascending order of id.
//   Else: DrawClusterFirst over the vocabulary's bins, with P_c = what
//     the head gives the cluster, banned words included. With one bin that is
//     PickByWeight with draw 0 over all ids.
// So the path is chosen from the request's own parameters only. Clusters are
// evaluated as far as the result needs them: a cluster whose mass is below what
// its words would have to reach is left alone, and so is one without an allowed
// id.
//
// Random numbers come by counter (Philox4x32-10, Salmon et al. 2011): draw j
// for the token at absolute position p under seed s is a function of (s, p, j).

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/sampling/distribution.h"
#include "model/sampling/sampling_params.h"
#include "model/sampling/token_kinds.h"

namespace txl {

struct SampleContext {
  // Ids of the session before the token to sample, oldest first; at least the
  // last penalty_window of them (all when there are fewer), with follow_kinds
  // at least the last.
  absl::Span<const int32_t> recent_ids;
  // Ids that may not be sampled now (stop and end tokens before min_tokens).
  absl::Span<const int32_t> banned_ids;
  int64_t position = 0;  // absolute position of the token to sample
};

// Whether the request needs probabilities of single words across clusters
// before the draw: any of top_k, top_p, min_p, typical_p, the three penalties,
// logit_bias, allowed_token_ids or follow_kinds differs from its default
// (= off). Temperature and bans do not.
bool UsesJointDistribution(const SamplingParams& params);

// The error of a row for which no token is left that could be sampled: the
// model's probabilities are 0, or the request's rules leave nothing.
absl::Status NothingToSample();

class Sampler {
 public:
  // `kinds`: the model's; null: it has none. REQUIRES: bins as described above.
  explicit Sampler(VocabularyBins bins,
                   std::shared_ptr<const TokenKinds> kinds = nullptr);

  // The next token. Internal when a log-probability that was looked at is NaN
  // or +inf, when the distribution's vocabulary is not this one's, or
  // NothingToSample.
  // REQUIRES: params are valid for a model with these kinds. Thread-safe for
  // different distributions.
  absl::StatusOr<int32_t> Sample(NextTokenDistribution& distribution,
                                 const SamplingParams& params,
                                 const SampleContext& context) const;
  // Samples from a distribution that is known whole, `logprobs` [V].
  absl::StatusOr<int32_t> Sample(absl::Span<const float> logprobs,
                                 const SamplingParams& params,
                                 const SampleContext& context) const;

  const VocabularyBins& bins() const { return bins_; }
  bool has_kinds() const { return kinds_ != nullptr; }

 private:
  VocabularyBins bins_;
  std::shared_ptr<const TokenKinds> kinds_;
};

}  // namespace txl
