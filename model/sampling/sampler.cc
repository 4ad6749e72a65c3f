#include "model/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/sampling/adjustments.h"
#include "model/sampling/candidate_filter.h"
#include "model/sampling/cluster_draw.h"
#include "model/sampling/draw.h"

namespace txl {
namespace {

absl::Status NothingToSample() {
  return absl::InternalError("no token has a probability above 0");
}

// The model's distribution in double precision.
absl::StatusOr<std::vector<double>> Widened(absl::Span<const float> logprobs) {
  std::vector<double> widened(logprobs.size());
  for (size_t i = 0; i < logprobs.size(); ++i) {
    // NaN is not less than anything.
    if (!(logprobs[i] < std::numeric_limits<float>::infinity())) {
      return absl::InternalError(
          absl::StrCat("log-probability of token ", i, " is ", logprobs[i]));
    }
    widened[i] = logprobs[i];
  }
  return widened;
}

// Lowest id on ties.
absl::StatusOr<int32_t> Best(absl::Span<const double> logprobs) {
  const auto best = std::max_element(logprobs.begin(), logprobs.end());
  if (best == logprobs.end() || std::isinf(*best)) return NothingToSample();
  return static_cast<int32_t>(best - logprobs.begin());
}

absl::StatusOr<int32_t> DrawJointly(absl::Span<const double> logprobs,
                                    const SamplingParams& params,
                                    UniformSequence uniforms) {
  std::vector<Candidate> candidates;
  candidates.reserve(logprobs.size());
  for (size_t i = 0; i < logprobs.size(); ++i) {
    if (std::isinf(logprobs[i])) continue;
    candidates.push_back({static_cast<int32_t>(i), logprobs[i], 0});
  }
  if (candidates.empty()) return NothingToSample();
  FilterCandidates(params, candidates);
  std::vector<double> weights;
  weights.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    weights.push_back(candidate.weight);
  }
  return candidates[PickByWeight(weights, uniforms.Next())].id;
}

// `allowed` is `logprobs` with the banned ids at -inf.
absl::StatusOr<int32_t> DrawByCluster(absl::Span<const double> logprobs,
                                      absl::Span<const double> allowed,
                                      const VocabularyBins& bins,
                                      const SamplingParams& params,
                                      const SampleContext& context) {
  const auto bin_of = [&](absl::Span<const double> values, size_t bin) {
    const int64_t begin = bins.ends[bin - 1];
    return values.subspan(begin, bins.ends[bin] - begin);
  };
  HeadDistribution head;
  head.words = allowed.first(bins.ends[0]);
  for (size_t bin = 1; bin < bins.ends.size(); ++bin) {
    const absl::Span<const double> members = bin_of(logprobs, bin);
    ClusterHead cluster;
    cluster.log_mass = ScaledLogSumExp(members, 1);
    cluster.size = static_cast<int64_t>(members.size());
    for (const int32_t id : context.banned_ids) {
      cluster.has_bans =
          cluster.has_bans || (id >= bins.ends[bin - 1] && id < bins.ends[bin]);
    }
    head.clusters.push_back(cluster);
  }
  UniformSequence uniforms(params.seed, context.position);
  const std::optional<ClusterPick> pick = DrawClusterFirst(
      head, [&](size_t cluster) { return bin_of(allowed, cluster + 1); },
      params.temperature, uniforms);
  if (!pick.has_value()) return NothingToSample();
  const int64_t begin = pick->cluster ? bins.ends[*pick->cluster] : 0;
  return static_cast<int32_t>(begin + pick->index);
}

}  // namespace

bool UsesJointDistribution(const SamplingParams& params) {
  const SamplingParams off;
  return params.top_k != off.top_k || params.top_p != off.top_p ||
         params.min_p != off.min_p || params.typical_p != off.typical_p ||
         params.repetition_penalty != off.repetition_penalty ||
         params.presence_penalty != off.presence_penalty ||
         params.frequency_penalty != off.frequency_penalty ||
         !params.logit_bias.empty();
}

Sampler::Sampler(VocabularyBins bins) : bins_(std::move(bins)) {}

absl::StatusOr<int32_t> Sampler::Sample(absl::Span<const float> logprobs,
                                        const SamplingParams& params,
                                        const SampleContext& context) const {
  if (static_cast<int64_t>(logprobs.size()) != bins_.ends.back()) {
    return absl::InternalError(
        absl::StrCat("distribution over ", logprobs.size(),
                     " tokens, the vocabulary has ", bins_.ends.back()));
  }
  TXL_ASSIGN_OR_RETURN(std::vector<double> adjusted, Widened(logprobs));
  const bool draws_by_cluster =
      params.temperature > 0 && !UsesJointDistribution(params);
  if (draws_by_cluster) {
    std::vector<double> allowed = adjusted;
    ApplyBans(context.banned_ids, absl::MakeSpan(allowed));
    return DrawByCluster(adjusted, allowed, bins_, params, context);
  }
  ApplyBiasAndPenalties(params, context.recent_ids, absl::MakeSpan(adjusted));
  ApplyBans(context.banned_ids, absl::MakeSpan(adjusted));
  if (params.temperature <= 0) return Best(adjusted);
  return DrawJointly(adjusted, params,
                     UniformSequence(params.seed, context.position));
}

std::vector<TokenLogprob> TopLogprobs(absl::Span<const float> logprobs,
                                      int count) {
  std::vector<TokenLogprob> top;
  if (count <= 0) return top;
  for (size_t i = 0; i < logprobs.size(); ++i) {
    const float logprob = logprobs[i];
    const bool full = top.size() == static_cast<size_t>(count);
    if (std::isnan(logprob) || (full && logprob <= top.back().logprob)) {
      continue;
    }
    if (full) top.pop_back();
    // Behind equal ones: they have lower ids.
    const auto place = std::upper_bound(
        top.begin(), top.end(), logprob,
        [](float value, const TokenLogprob& t) { return value > t.logprob; });
    top.insert(place, {static_cast<int32_t>(i), logprob});
  }
  return top;
}

}  // namespace txl
