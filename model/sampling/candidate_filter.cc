#include "model/sampling/candidate_filter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace txl {
namespace {

using Candidates = std::vector<Candidate>;

// Up to here a bounded heap beats partitioning a copy of all candidates.
constexpr int64_t kMaxHeapSize = 4096;
// First block that RunBorder sorts; later ones grow by this factor.
constexpr size_t kFirstBlock = 1024;
constexpr size_t kBlockGrowth = 8;

bool IsBetter(const Candidate& a, const Candidate& b) {
  return a.logprob != b.logprob ? a.logprob > b.logprob : a.id < b.id;
}

// A candidate's place in an order: by ascending key, equal ones by id.
struct Rank {
  double key = 0;
  int32_t id = 0;
  double weight = 0;
};

bool IsBefore(const Rank& a, const Rank& b) {
  return a.key != b.key ? a.key < b.key : a.id < b.id;
}

double TotalWeight(const Candidates& candidates) {
  double total = 0;
  for (const Candidate& candidate : candidates) total += candidate.weight;
  return total;
}

// The last of the shortest run, first ranks first, whose weights sum to at
// least `weight`. Sorts block by block: most runs are short.
Rank RunBorder(std::vector<Rank> ranks, double weight) {
  double sum = 0;
  size_t done = 0;
  for (size_t block = kFirstBlock; done < ranks.size(); block *= kBlockGrowth) {
    const size_t end = std::min(ranks.size(), done + block);
    const auto from = ranks.begin() + done;
    const auto to = ranks.begin() + end;
    if (to != ranks.end()) std::nth_element(from, to, ranks.end(), IsBefore);
    std::sort(from, to, IsBefore);
    for (; done < end; ++done) {
      sum += ranks[done].weight;
      if (sum >= weight) return ranks[done];
    }
  }
  return ranks.back();
}

// Keeps the shortest run by ascending `key` that has `weight`; the candidates'
// own order stays.
template <typename Key>
void KeepRun(const Key& key, double weight, Candidates& candidates) {
  const auto rank = [&](const Candidate& candidate) {
    return Rank{key(candidate), candidate.id, candidate.weight};
  };
  std::vector<Rank> ranks;
  ranks.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    ranks.push_back(rank(candidate));
  }
  const Rank border = RunBorder(std::move(ranks), weight);
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return IsBefore(border, rank(candidate));
  });
}

Candidate KthBest(const Candidates& candidates, int64_t k) {
  if (k <= kMaxHeapSize) {
    Candidates best(k);
    std::partial_sort_copy(candidates.begin(), candidates.end(), best.begin(),
                           best.end(), IsBetter);
    return best.back();
  }
  Candidates copy = candidates;
  std::nth_element(copy.begin(), copy.begin() + k - 1, copy.end(), IsBetter);
  return copy[k - 1];
}

void KeepTopK(int64_t k, Candidates& candidates) {
  if (k == 0 || k >= static_cast<int64_t>(candidates.size())) return;
  const Candidate border = KthBest(candidates, k);
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return IsBetter(border, candidate);
  });
}

double BestLogprob(const Candidates& candidates) {
  return std::min_element(candidates.begin(), candidates.end(), IsBetter)
      ->logprob;
}

void SetWeights(double temperature, Candidates& candidates) {
  const double best = BestLogprob(candidates);
  for (Candidate& candidate : candidates) {
    candidate.weight = std::exp((candidate.logprob - best) / temperature);
  }
}

void KeepTopP(double top_p, Candidates& candidates) {
  if (top_p >= 1) return;
  KeepRun([](const Candidate& candidate) { return -candidate.logprob; },
          top_p * TotalWeight(candidates), candidates);
}

void KeepMinP(double min_p, Candidates& candidates) {
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return candidate.weight < min_p;
  });
}

void KeepTypical(double typical_p, double temperature, Candidates& candidates) {
  if (typical_p >= 1) return;
  const double total = TotalWeight(candidates);
  const double best = BestLogprob(candidates);
  const double log_total = std::log(total);
  const auto log_p = [&](const Candidate& candidate) {
    return (candidate.logprob - best) / temperature - log_total;
  };
  double entropy = 0;
  for (const Candidate& candidate : candidates) {
    // The limit of p log p at 0 is 0.
    if (candidate.weight == 0) continue;
    entropy -= candidate.weight / total * log_p(candidate);
  }
  KeepRun(
      [&](const Candidate& candidate) {
        return std::abs(entropy + log_p(candidate));
      },
      typical_p * total, candidates);
}

}  // namespace

bool HasFilters(const SamplingParams& params) {
  const SamplingParams off;
  return params.top_k != off.top_k || params.top_p != off.top_p ||
         params.min_p != off.min_p || params.typical_p != off.typical_p;
}

bool HasLowerBound(const SamplingParams& params) {
  const SamplingParams off;
  return params.top_k > 0 || (params.min_p > 0 && params.top_p == off.top_p &&
                              params.typical_p == off.typical_p);
}

double LowerBound(const SamplingParams& params,
                  const std::vector<Candidate>& known) {
  const auto count = static_cast<int64_t>(known.size());
  if (count == 0 || params.top_k > count) {
    return -std::numeric_limits<double>::infinity();
  }
  if (params.top_k > 0) return KthBest(known, params.top_k).logprob;
  return BestLogprob(known) + params.temperature * std::log(params.min_p);
}

void FilterCandidates(const SamplingParams& params,
                      std::vector<Candidate>& candidates) {
  KeepTopK(params.top_k, candidates);
  SetWeights(params.temperature, candidates);
  KeepTopP(params.top_p, candidates);
  KeepMinP(params.min_p, candidates);
  KeepTypical(params.typical_p, params.temperature, candidates);
}

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
  return HasPenalties(params) || !params.logit_bias.empty() ||
         !params.allowed_token_ids.empty() || params.follow_kinds;
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
