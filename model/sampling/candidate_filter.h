#pragma once

// Temperature and the filters top_k, top_p, min_p, typical_p on a joint
// distribution. Pure: no vocabulary, no random numbers. An implementation that
// knows only part of the distribution may pass the part that can be kept.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "model/sampling/sampling_params.h"

namespace txl {

struct Candidate {
  int32_t id = 0;
  double logprob = 0;  // after bias and penalties; any constant may be added
  double weight = 0;   // set by FilterCandidates; in [0, 1]
};

// Whether any filter differs from its default (= off).
bool HasFilters(const SamplingParams& params);

// Whether top_k, or min_p alone, decides what is kept: then candidates below a
// bound never are, and need not be known.
bool HasLowerBound(const SamplingParams& params);
// The smallest logprob with which a candidate can be kept, as far as the
// `known` ones tell; -inf while they tell nothing. REQUIRES: HasLowerBound.
double LowerBound(const SamplingParams& params,
                  const std::vector<Candidate>& known);

// Leaves the kept candidates, in ascending order of id, each with its weight
//   w = exp((logprob - max logprob) / temperature).
// "Best first" is by descending logprob, equal ones by ascending id. W is the
// sum of the weights kept so far (in order of id), p = w / W. In this order:
//   top_k:     the best k are kept.
//   top_p:     the shortest best-first run whose weights sum to >= top_p W.
//   min_p:     w >= min_p times the largest w (which is 1).
//   typical_p: with the entropy H = -sum p log p, candidates by ascending
//              |H + log p|, equal ones by ascending id: the shortest run whose
//              weights sum to >= typical_p W (Meister et al. 2022,
//              arXiv:2202.00666, "locally typical sampling").
// At least one candidate is kept, and one of weight > 0 is among the kept.
// REQUIRES: params are valid and temperature > 0; candidates are not empty, in
// ascending order of id, with finite logprobs.
void FilterCandidates(const SamplingParams& params,
                      std::vector<Candidate>& candidates);

// What happens to log-probabilities before any candidate is chosen: bias,
// penalties, bans.

// Whether any of the three penalties differs from its default (= off).
bool HasPenalties(const SamplingParams& params);
// Whether any penalty, the bias, the allowed ids or follow_kinds do.
bool HasAdjustments(const SamplingParams& params);

// Changes `logprobs` [V] in place, in this order:
//   bias:        l := l + logit_bias[id]
//   repetition:  for each distinct id in the window, l := l * r if l <= 0, else
//                l / r (Keskar et al. 2019, arXiv:1909.05858, on log-probs
//                instead of logits; l > 0 only comes from a bias), at most
//                kMostAdjustedLogprob
//   presence:    for each distinct id in the window, l := l - a
//   frequency:   the same, l := l - b * (times that the id is in the window)
// The window is the last penalty_window of recent_ids (all, when there are
// fewer). Ids outside [0, V) have no effect. -inf stays -inf.
void ApplyBiasAndPenalties(const SamplingParams& params,
                           absl::Span<const int32_t> recent_ids,
                           absl::Span<double> logprobs);

// l := -inf for every id of banned_ids in [0, V).
void ApplyBans(absl::Span<const int32_t> banned_ids,
               absl::Span<double> logprobs);

}  // namespace txl
