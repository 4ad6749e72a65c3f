#include "model/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/sampling/candidate_filter.h"
#include "model/sampling/cluster_draw.h"
#include "model/sampling/draw.h"

namespace txl {
namespace {

absl::Status CheckLogprob(double logprob, absl::string_view what, int64_t id) {
  // NaN is not less than anything.
  if (logprob < std::numeric_limits<double>::infinity()) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      absl::StrCat("log-probability of ", what, " ", id, " is ", logprob));
}

// Appends log-probabilities in double precision; the first is id `first_id`'s.
absl::Status AppendWidened(absl::Span<const float> logprobs, int64_t first_id,
                           std::vector<double>& out) {
  out.reserve(out.size() + logprobs.size());
  for (size_t i = 0; i < logprobs.size(); ++i) {
    TXL_RETURN_IF_ERROR(
        CheckLogprob(logprobs[i], "token", first_id + static_cast<int64_t>(i)));
    out.push_back(logprobs[i]);
  }
  return absl::OkStatus();
}

// The whole distribution; with allowed ids, all others at -inf.
absl::StatusOr<std::vector<double>> Widened(NextTokenDistribution& distribution,
                                            absl::Span<const int32_t> allowed) {
  const VocabularyBins& bins = distribution.bins();
  std::vector<double> out;
  if (!allowed.empty()) {
    out.assign(bins.ends.back(), -std::numeric_limits<double>::infinity());
    for (const int32_t id : allowed) {
      out[id] = LogprobOf(distribution, id);
      TXL_RETURN_IF_ERROR(CheckLogprob(out[id], "token", id));
    }
    return out;
  }
  TXL_RETURN_IF_ERROR(AppendWidened(distribution.Words(), 0, out));
  for (size_t c = 0; c < bins.clusters(); ++c) {
    TXL_RETURN_IF_ERROR(
        AppendWidened(distribution.ClusterWords(c), bins.ends[c], out));
  }
  return out;
}

// What the head alone tells: words with banned ones at -inf, and masses.
absl::StatusOr<HeadDistribution> HeadOf(NextTokenDistribution& distribution,
                                        const SampleContext& context,
                                        std::vector<double>& words) {
  TXL_RETURN_IF_ERROR(AppendWidened(distribution.Words(), 0, words));
  ApplyBans(context.banned_ids, absl::MakeSpan(words));
  HeadDistribution head;
  head.words = words;
  const VocabularyBins& bins = distribution.bins();
  for (size_t c = 0; c < bins.clusters(); ++c) {
    ClusterHead cluster = {.log_mass = distribution.ClusterMass(c)};
    TXL_RETURN_IF_ERROR(
        CheckLogprob(cluster.log_mass, "cluster", static_cast<int64_t>(c)));
    cluster.size = bins.cluster_size(c);
    for (const int32_t id : context.banned_ids) {
      cluster.has_bans =
          cluster.has_bans || (id >= bins.ends[c] && id < bins.ends[c + 1]);
    }
    head.clusters.push_back(cluster);
  }
  return head;
}

// The words of cluster c, banned ones at -inf.
absl::StatusOr<std::vector<double>> AllowedWords(
    NextTokenDistribution& distribution, size_t c,
    const SampleContext& context) {
  const int64_t first = distribution.bins().ends[c];
  std::vector<double> words;
  TXL_RETURN_IF_ERROR(
      AppendWidened(distribution.ClusterWords(c), first, words));
  for (const int32_t id : context.banned_ids) {
    if (id >= first && id - first < static_cast<int64_t>(words.size())) {
      words[id - first] = -std::numeric_limits<double>::infinity();
    }
  }
  return words;
}

// Lowest id on ties.
absl::StatusOr<int32_t> Best(absl::Span<const double> logprobs) {
  const auto best = std::max_element(logprobs.begin(), logprobs.end());
  if (best == logprobs.end() || std::isinf(*best)) return NothingToSample();
  return static_cast<int32_t>(best - logprobs.begin());
}

absl::StatusOr<int32_t> DrawByCluster(NextTokenDistribution& distribution,
                                      const SamplingParams& params,
                                      const SampleContext& context) {
  std::vector<double> words;
  TXL_ASSIGN_OR_RETURN(const HeadDistribution head,
                       HeadOf(distribution, context, words));
  absl::Status status;
  std::vector<double> tail;
  const auto tail_words = [&](size_t c) -> absl::Span<const double> {
    absl::StatusOr<std::vector<double>> allowed =
        AllowedWords(distribution, c, context);
    if (allowed.ok()) {
      tail = *std::move(allowed);
    } else {
      status = allowed.status();
      tail.assign(head.clusters[c].size,
                  -std::numeric_limits<double>::infinity());
    }
    return tail;
  };
  UniformSequence uniforms(params.seed, context.position);
  const std::optional<ClusterPick> pick =
      DrawClusterFirst(head, tail_words, params.temperature, uniforms);
  TXL_RETURN_IF_ERROR(status);
  if (!pick.has_value()) return NothingToSample();
  const int64_t begin =
      pick->cluster ? distribution.bins().ends[*pick->cluster] : 0;
  return static_cast<int32_t>(begin + pick->index);
}

// Greedy without adjustments: a cluster counts only if its mass reaches
// the best word.
absl::StatusOr<int32_t> BestWord(NextTokenDistribution& distribution,
                                 const SampleContext& context) {
  std::vector<double> words;
  TXL_ASSIGN_OR_RETURN(const HeadDistribution head,
                       HeadOf(distribution, context, words));
  double best = -std::numeric_limits<double>::infinity();
  int32_t best_id = -1;
  const auto take = [&](absl::Span<const double> logprobs, int64_t first_id) {
    const auto largest = std::max_element(logprobs.begin(), logprobs.end());
    if (largest == logprobs.end() || *largest <= best) return;
    best = *largest;
    best_id = static_cast<int32_t>(first_id + (largest - logprobs.begin()));
  };
  take(words, 0);
  for (size_t c = 0; c < head.clusters.size(); ++c) {
    if (head.clusters[c].log_mass + kMassGuard < best) continue;
    TXL_ASSIGN_OR_RETURN(const std::vector<double> allowed,
                         AllowedWords(distribution, c, context));
    take(allowed, distribution.bins().ends[c]);
  }
  if (best_id < 0) return NothingToSample();
  return best_id;
}

void AppendCandidates(absl::Span<const double> logprobs, int64_t first_id,
                      std::vector<Candidate>& out) {
  for (size_t i = 0; i < logprobs.size(); ++i) {
    if (std::isinf(logprobs[i])) continue;
    out.push_back({static_cast<int32_t>(first_id + static_cast<int64_t>(i)),
                   logprobs[i], 0});
  }
}

// Candidates of every bin that can hold a kept word.
absl::StatusOr<std::vector<Candidate>> BoundedCandidates(
    NextTokenDistribution& distribution, const SamplingParams& params,
    const SampleContext& context) {
  std::vector<double> words;
  TXL_ASSIGN_OR_RETURN(const HeadDistribution head,
                       HeadOf(distribution, context, words));
  std::vector<Candidate> candidates;
  AppendCandidates(words, 0, candidates);
  for (size_t c = 0; c < head.clusters.size(); ++c) {
    if (head.clusters[c].log_mass + kMassGuard <
        LowerBound(params, candidates)) {
      continue;
    }
    TXL_ASSIGN_OR_RETURN(const std::vector<double> allowed,
                         AllowedWords(distribution, c, context));
    AppendCandidates(allowed, distribution.bins().ends[c], candidates);
  }
  return candidates;
}

// Every word, after allowed ids, kinds, bias, penalties and bans.
absl::StatusOr<std::vector<double>> Adjusted(
    NextTokenDistribution& distribution, const SamplingParams& params,
    const SampleContext& context, const TokenKinds* kinds) {
  TXL_ASSIGN_OR_RETURN(std::vector<double> adjusted,
                       Widened(distribution, params.allowed_token_ids));
  if (params.follow_kinds && !context.recent_ids.empty()) {
    kinds->Forbid(context.recent_ids.back(), absl::MakeSpan(adjusted));
  }
  ApplyBiasAndPenalties(params, context.recent_ids, absl::MakeSpan(adjusted));
  ApplyBans(context.banned_ids, absl::MakeSpan(adjusted));
  return adjusted;
}

absl::StatusOr<int32_t> DrawJointly(NextTokenDistribution& distribution,
                                    const SamplingParams& params,
                                    const SampleContext& context,
                                    const TokenKinds* kinds) {
  std::vector<Candidate> candidates;
  if (HasLowerBound(params) && !HasAdjustments(params)) {
    TXL_ASSIGN_OR_RETURN(candidates,
                         BoundedCandidates(distribution, params, context));
  } else {
    TXL_ASSIGN_OR_RETURN(const std::vector<double> adjusted,
                         Adjusted(distribution, params, context, kinds));
    AppendCandidates(adjusted, 0, candidates);
  }
  if (candidates.empty()) return NothingToSample();
  FilterCandidates(params, candidates);
  std::vector<double> weights;
  weights.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    weights.push_back(candidate.weight);
  }
  UniformSequence uniforms(params.seed, context.position);
  return candidates[PickByWeight(weights, uniforms.Next())].id;
}

}  // namespace

bool UsesJointDistribution(const SamplingParams& params) {
  return HasFilters(params) || HasAdjustments(params);
}

absl::Status NothingToSample() {
  return absl::InternalError(
      "no token has a probability above 0; allowed_token_ids, follow_kinds and "
      "min_tokens may have left none");
}

Sampler::Sampler(VocabularyBins bins, std::shared_ptr<const TokenKinds> kinds)
    : bins_(std::move(bins)), kinds_(std::move(kinds)) {}

absl::StatusOr<int32_t> Sampler::Sample(NextTokenDistribution& distribution,
                                        const SamplingParams& params,
                                        const SampleContext& context) const {
  if (distribution.bins().ends != bins_.ends) {
    return absl::InternalError(
        absl::StrCat("distribution over ", distribution.bins().ends.back(),
                     " tokens, the vocabulary has ", bins_.ends.back()));
  }
  const bool joint = UsesJointDistribution(params);
  if (params.temperature > 0) {
    if (!joint) return DrawByCluster(distribution, params, context);
    if (!params.follow_kinds || context.recent_ids.empty()) {
      return DrawJointly(distribution, params, context, nullptr);
    }
    SamplingParams here = params;
    here.temperature *=
        kinds_->After(context.recent_ids.back()).next_temperature;
    return DrawJointly(distribution, here, context, kinds_.get());
  }
  if (!joint) return BestWord(distribution, context);
  TXL_ASSIGN_OR_RETURN(const std::vector<double> adjusted,
                       Adjusted(distribution, params, context, kinds_.get()));
  return Best(adjusted);
}

absl::StatusOr<int32_t> Sampler::Sample(absl::Span<const float> logprobs,
                                        const SamplingParams& params,
                                        const SampleContext& context) const {
  if (static_cast<int64_t>(logprobs.size()) != bins_.ends.back()) {
    return absl::InternalError(
        absl::StrCat("distribution over ", logprobs.size(),
                     " tokens, the vocabulary has ", bins_.ends.back()));
  }
  FullDistribution distribution(logprobs, bins_);
  return Sample(distribution, params, context);
}

}  // namespace txl
