#include "model/cuda/kernels/sampling_slots.h"

#include <algorithm>

#include "model/sampling/candidate_filter.h"
#include "model/sampling/sampler.h"

namespace txl::cuda {
namespace {

SamplingPath PathOf(const SamplingParams& params) {
  if (params.temperature == 0) {
    return HasAdjustments(params) ? SamplingPath::kBestAdjusted
                                  : SamplingPath::kBest;
  }
  if (!UsesJointDistribution(params)) return SamplingPath::kDrawByCluster;
  const bool bounded = HasLowerBound(params) && !HasAdjustments(params);
  return bounded ? SamplingPath::kDrawBounded : SamplingPath::kDrawJointly;
}

// Whether the device knows all filters that are on: those that are reset here.
bool KnowsFilters(SamplingParams params) {
  const SamplingParams off;
  params.top_k = off.top_k;
  params.top_p = off.top_p;
  params.min_p = off.min_p;
  params.typical_p = off.typical_p;
  return !HasFilters(params);
}

}  // namespace

bool SampledOnDevice(const SamplingParams& params, int64_t banned_ids,
                     const VocabularyBins& bins, const SamplingLimits& limits) {
  return bins.clusters() <= kMaxSampledClusters && KnowsFilters(params) &&
         static_cast<int64_t>(params.logit_bias.size()) <= limits.biases &&
         static_cast<int64_t>(params.allowed_token_ids.size()) <=
             limits.allowed &&
         banned_ids <= limits.banned &&
         (!HasPenalties(params) || params.penalty_window <= limits.recent) &&
         (!params.follow_kinds || limits.recent > 0);
}

void FillSamplingSlot(const SamplingParams& params, const SlotContext& context,
                      const SamplingSlots& slots, int32_t index) {
  SamplingSlot& slot = *slots.slot(index);
  slot.path = PathOf(params);
  slot.last_sampled = -1;
  slot.bias_count = static_cast<int32_t>(params.logit_bias.size());
  slot.banned_count = static_cast<int32_t>(context.banned_ids.size());
  slot.allowed_count = static_cast<int32_t>(params.allowed_token_ids.size());
  slot.min_position = context.min_position;
  slot.window =
      HasPenalties(params) ? std::max<int32_t>(params.penalty_window, 0) : 0;
  slot.top_k = static_cast<int32_t>(params.top_k);
  slot.follows_kinds = params.follow_kinds ? 1 : 0;
  slot.seed = params.seed;
  slot.temperature = params.temperature;
  slot.top_p = params.top_p;
  slot.min_p = params.min_p;
  slot.typical_p = params.typical_p;
  slot.repetition_penalty = params.repetition_penalty;
  slot.presence_penalty = params.presence_penalty;
  slot.frequency_penalty = params.frequency_penalty;
  int32_t entry = 0;
  for (const auto& [id, bias] : params.logit_bias) {
    slots.bias_ids(index)[entry] = id;
    slots.biases(index)[entry++] = bias;
  }
  std::copy(context.banned_ids.begin(), context.banned_ids.end(),
            slots.banned(index));
  std::copy(params.allowed_token_ids.begin(), params.allowed_token_ids.end(),
            slots.allowed(index));
  const absl::Span<const int32_t> recent = context.recent_ids.last(
      std::min<size_t>(context.recent_ids.size(), slots.limits.recent));
  std::copy(recent.begin(), recent.end(), slots.recent(index));
  slot.recent_count = static_cast<int64_t>(recent.size());
}

}  // namespace txl::cuda
