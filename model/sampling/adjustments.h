#pragma once

// What happens to log-probabilities before any candidate is chosen: bias,
// penalties, bans.

#include <cstdint>

#include "absl/types/span.h"
#include "model/sampling/sampling_params.h"

namespace txl {

// Whether any of the three penalties differs from its default (= off).
bool HasPenalties(const SamplingParams& params);
// Whether any penalty or bias does.
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
