#include "model/sampling/cluster_draw.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace txl {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

double Largest(absl::Span<const double> logprobs) {
  return logprobs.empty() ? kImpossible
                          : *std::max_element(logprobs.begin(), logprobs.end());
}

// Draws an index with weight exp(l / T).
std::optional<size_t> PickByLogprob(absl::Span<const double> logprobs,
                                    double temperature,
                                    UniformSequence& uniforms) {
  const double largest = Largest(logprobs);
  if (largest == kImpossible) return std::nullopt;
  std::vector<double> weights(logprobs.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = std::exp((logprobs[i] - largest) / temperature);
  }
  return PickByWeight(weights, uniforms.Next());
}

// Entries are kept as T log(weight), which stays in range at any T: a word's
// is its log-probability, a cluster's is log P_c + T log U_c.
double ClusterBound(const ClusterHead& cluster, double temperature) {
  const double spread =
      temperature > 1 ? (temperature - 1) * std::log(cluster.size) : 0;
  return cluster.log_mass + spread;
}

}  // namespace

double ScaledLogSumExp(absl::Span<const double> logprobs, double temperature) {
  const double largest = Largest(logprobs);
  if (largest == kImpossible) return kImpossible;
  double sum = 0;
  for (const double logprob : logprobs) {
    sum += std::exp((logprob - largest) / temperature);
  }
  return largest + temperature * std::log(sum);
}

std::optional<ClusterPick> DrawClusterFirst(const HeadDistribution& head,
                                            TailLogprobs tail_logprobs,
                                            double temperature,
                                            UniformSequence& uniforms) {
  const size_t n_words = head.words.size();
  std::vector<double> entries(head.words.begin(), head.words.end());
  std::vector<bool> is_exact;
  for (const ClusterHead& cluster : head.clusters) {
    entries.push_back(ClusterBound(cluster, temperature));
    is_exact.push_back(temperature == 1 && !cluster.has_bans);
  }
  while (true) {
    const std::optional<size_t> entry =
        PickByLogprob(entries, temperature, uniforms);
    if (!entry.has_value()) return std::nullopt;
    if (*entry < n_words) return ClusterPick{std::nullopt, *entry};
    const size_t cluster = *entry - n_words;
    const absl::Span<const double> tail = tail_logprobs(cluster);
    if (!is_exact[cluster]) {
      const double exact = ScaledLogSumExp(tail, temperature);
      const double acceptance =
          std::exp((exact - entries[*entry]) / temperature);
      entries[*entry] = exact;
      is_exact[cluster] = true;
      if (uniforms.Next() >= acceptance) continue;
    }
    const std::optional<size_t> word =
        PickByLogprob(tail, temperature, uniforms);
    if (!word.has_value()) return std::nullopt;
    return ClusterPick{cluster, *word};
  }
}

}  // namespace txl
