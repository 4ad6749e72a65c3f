#include "tests/model/sampling/sampling_oracle.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace txl {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

void Normalize(std::vector<double>& p) {
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& value : p) value /= sum;
}

// Ids by ascending key, equal ones by id.
std::vector<size_t> SortedIds(size_t size,
                              const std::function<double(size_t)>& key) {
  std::vector<size_t> ids(size);
  std::iota(ids.begin(), ids.end(), size_t{0});
  std::stable_sort(ids.begin(), ids.end(),
                   [&](size_t a, size_t b) { return key(a) < key(b); });
  return ids;
}

// Zeroes all but the shortest start of `order` that has at least `mass`.
void KeepMass(const std::vector<size_t>& order, double mass,
              std::vector<double>& p) {
  double sum = 0;
  for (const size_t id : order) {
    const double value = p[id];
    if (sum >= mass) p[id] = 0;
    sum += value;
  }
  Normalize(p);
}

// Null: the id is of none.
const TokenKind* KindOf(const std::vector<TokenKind>& kinds, size_t id) {
  for (const TokenKind& kind : kinds) {
    for (const auto& [first, last] : kind.tokens) {
      for (int32_t each = first; each <= last; ++each) {
        if (static_cast<size_t>(each) == id) return &kind;
      }
    }
  }
  return nullptr;
}

// Of the session's last id; null also where nobody asks.
const TokenKind* LastKind(const SamplingParams& params,
                          const OracleContext& context) {
  if (!params.follow_kinds || context.recent_ids.empty()) return nullptr;
  return KindOf(context.kinds, context.recent_ids.back());
}

}  // namespace

std::vector<double> OracleAdjusted(const std::vector<float>& logprobs,
                                   const SamplingParams& params,
                                   const OracleContext& context) {
  std::vector<double> l(logprobs.begin(), logprobs.end());
  const std::vector<int32_t>& allowed = params.allowed_token_ids;
  for (size_t id = 0; id < l.size() && !allowed.empty(); ++id) {
    if (std::count(allowed.begin(), allowed.end(), id) == 0) l[id] = kNever;
  }
  const TokenKind* before = LastKind(params, context);
  for (size_t id = 0; id < l.size(); ++id) {
    if (before == nullptr || !before->next.has_value()) break;
    const TokenKind* kind = KindOf(context.kinds, id);
    const bool may_follow =
        kind != nullptr &&
        std::count(before->next->begin(), before->next->end(), kind->name) > 0;
    if (!may_follow) l[id] = kNever;
  }
  for (const auto& [id, bias] : params.logit_bias) l[id] += bias;
  const auto& recent = context.recent_ids;
  const size_t from =
      recent.size() - std::min<size_t>(recent.size(), params.penalty_window);
  for (size_t id = 0; id < l.size(); ++id) {
    const auto count = std::count(recent.begin() + from, recent.end(),
                                  static_cast<int32_t>(id));
    if (count == 0) continue;
    l[id] = l[id] > 0 ? l[id] / params.repetition_penalty
                      : l[id] * params.repetition_penalty;
    l[id] -= params.presence_penalty + params.frequency_penalty * count;
  }
  for (const int32_t id : context.banned_ids) l[id] = kNever;
  return l;
}

std::vector<double> OracleDistribution(const std::vector<float>& logprobs,
                                       const SamplingParams& params,
                                       const OracleContext& context) {
  const std::vector<double> l = OracleAdjusted(logprobs, params, context);
  const TokenKind* before = LastKind(params, context);
  const double temperature =
      params.temperature * (before == nullptr ? 1 : before->next_temperature);
  const double largest = *std::max_element(l.begin(), l.end());
  std::vector<double> p(l.size());
  for (size_t id = 0; id < l.size(); ++id) {
    p[id] = std::exp((l[id] - largest) / temperature);
  }
  Normalize(p);
  const std::vector<size_t> best_first =
      SortedIds(l.size(), [&](size_t id) { return -l[id]; });
  if (params.top_k > 0) {
    for (size_t i = params.top_k; i < l.size(); ++i) p[best_first[i]] = 0;
    Normalize(p);
  }
  if (params.top_p < 1) KeepMass(best_first, params.top_p, p);
  const double p_max = *std::max_element(p.begin(), p.end());
  for (double& value : p) {
    if (value < params.min_p * p_max) value = 0;
  }
  Normalize(p);
  if (params.typical_p < 1) {
    double entropy = 0;
    for (const double value : p) {
      if (value > 0) entropy -= value * std::log(value);
    }
    KeepMass(SortedIds(l.size(),
                       [&](size_t id) {
                         return p[id] > 0 ? std::abs(entropy + std::log(p[id]))
                                          : -kNever;
                       }),
             params.typical_p, p);
  }
  return p;
}

std::vector<float> RandomLogprobs(std::mt19937& random, size_t size,
                                  double spread) {
  std::normal_distribution<double> normal(0, spread);
  std::vector<double> logits(size);
  for (double& logit : logits) logit = normal(random);
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  std::vector<float> logprobs(size);
  for (size_t i = 0; i < size; ++i) {
    logprobs[i] = static_cast<float>(logits[i] - std::log(sum));
  }
  return logprobs;
}

std::vector<ParameterCase> AllParameterCases() {
  return {
      {"cold", [](SamplingParams& p) { p.temperature = 0.6; }},
      {"hot", [](SamplingParams& p) { p.temperature = 1.7; }},
      {"top_k", [](SamplingParams& p) { p.top_k = 7; }},
      {"top_p", [](SamplingParams& p) { p.top_p = 0.83; }},
      {"min_p", [](SamplingParams& p) { p.min_p = 0.07; }},
      {"typical_p", [](SamplingParams& p) { p.typical_p = 0.71; }},
      {"repetition", [](SamplingParams& p) { p.repetition_penalty = 1.4; }},
      {"presence", [](SamplingParams& p) { p.presence_penalty = 0.9; }},
      {"frequency", [](SamplingParams& p) { p.frequency_penalty = -0.6; }},
      {"bias",
       [](SamplingParams& p) {
         p.logit_bias = {{0, 3.5}, {3, -2.0}, {11, 1.5}};
       }},
      {"allowed",
       [](SamplingParams& p) {
         p.allowed_token_ids = {1, 3, 4, 7, 8, 11, 12, 14};
       }},
      {"kinds", [](SamplingParams& p) { p.follow_kinds = true; }},
      {"window", [](SamplingParams& p) { p.penalty_window = 3; }},
  };
}

}  // namespace txl
