#include "model/sampling/adjustments.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_map.h"

namespace txl {
namespace {

bool InRange(int32_t id, absl::Span<const double> logprobs) {
  return id >= 0 && static_cast<size_t>(id) < logprobs.size();
}

double Penalized(double logprob, int32_t count, const SamplingParams& params) {
  logprob = logprob <= 0 ? logprob * params.repetition_penalty
                         : std::min(logprob / params.repetition_penalty,
                                    kMostAdjustedLogprob);
  logprob -= params.presence_penalty;
  return logprob - params.frequency_penalty * count;
}

}  // namespace

bool HasPenalties(const SamplingParams& params) {
  const SamplingParams off;
  return params.repetition_penalty != off.repetition_penalty ||
         params.presence_penalty != off.presence_penalty ||
         params.frequency_penalty != off.frequency_penalty;
}

bool HasAdjustments(const SamplingParams& params) {
  return HasPenalties(params) || !params.logit_bias.empty();
}

void ApplyBiasAndPenalties(const SamplingParams& params,
                           absl::Span<const int32_t> recent_ids,
                           absl::Span<double> logprobs) {
  for (const auto& [id, bias] : params.logit_bias) {
    if (InRange(id, logprobs)) logprobs[id] += bias;
  }
  if (!HasPenalties(params)) return;
  const size_t window = std::min<size_t>(
      recent_ids.size(), std::max<int32_t>(params.penalty_window, 0));
  absl::flat_hash_map<int32_t, int32_t> counts;
  for (const int32_t id : recent_ids.last(window)) {
    if (InRange(id, logprobs)) ++counts[id];
  }
  for (const auto& [id, count] : counts) {
    logprobs[id] = Penalized(logprobs[id], count, params);
  }
}

void ApplyBans(absl::Span<const int32_t> banned_ids,
               absl::Span<double> logprobs) {
  for (const int32_t id : banned_ids) {
    if (InRange(id, logprobs)) {
      logprobs[id] = -std::numeric_limits<double>::infinity();
    }
  }
}

}  // namespace txl
