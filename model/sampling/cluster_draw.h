#pragma once

// The cluster-first draw from an adaptive softmax (Grave et al. 2017,
// arXiv:1609.04309): a head word or a cluster is drawn from what the head
// alone tells, and a cluster's words are looked at only when it is drawn. The
// result has exactly the distribution p^(1/T) / sum p^(1/T) over all words.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "model/sampling/draw.h"

namespace txl {

struct ClusterHead {
  double log_mass = 0;  // log P_c: what the head gives the cluster; may be -inf
  int64_t size = 0;     // n_c >= 1 words
  bool has_bans = false;  // some of its words may not be drawn
};

struct HeadDistribution {
  // Natural log-probabilities of the head words; banned ones are -inf.
  absl::Span<const double> words;
  std::vector<ClusterHead> clusters;
};

// Joint log-probabilities of a cluster's words, n_c of them, banned ones -inf.
// Valid until the next call.
using TailLogprobs = absl::FunctionRef<absl::Span<const double>(size_t)>;

struct ClusterPick {
  std::optional<size_t> cluster;  // absent: a head word
  size_t index = 0;               // in the head's or the cluster's words
};

// At temperature T, word i has weight p_i^(1/T) and cluster c has weight
// P_c^(1/T) S_c with S_c = sum over its words of (p_i / P_c)^(1/T). S_c is not
// known before the tail is, but U_c is, which is never smaller:
//   U_c = 1 for T <= 1, n_c^(1 - 1/T) for T > 1.
// 1. Draw an entry among the words (weights above) and the clusters (weight
//    P_c^(1/T) U_c), words before clusters, each in order. A word: done.
// 2. The drawn cluster is evaluated. If U_c was only a bound, one draw u
//    decides: u < S_c / U_c accepts it; else U_c := S_c, back to 1.
// 3. One draw picks inside the cluster.
// U_c is exact from the start when T = 1 and the cluster has no bans; after an
// evaluation it always is. So every tail is evaluated at most once for step 2.
// Draws are taken from `uniforms` in the order in which they are needed.
//
// Nothing when no word can be drawn. REQUIRES: temperature > 0.
std::optional<ClusterPick> DrawClusterFirst(const HeadDistribution& head,
                                            TailLogprobs tail_logprobs,
                                            double temperature,
                                            UniformSequence& uniforms);

// T log sum exp(l / T), l / T taken relative to the largest: no overflow. At
// T = 1 the log of the sum of probabilities. -inf when all are.
double ScaledLogSumExp(absl::Span<const double> logprobs, double temperature);

}  // namespace txl
