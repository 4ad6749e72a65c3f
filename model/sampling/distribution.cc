#include "model/sampling/distribution.h"

#include <algorithm>
#include <cmath>

#include "model/sampling/cluster_draw.h"

namespace txl {
namespace {

// Inserts the ids of one bin into the best `count` so far.
void InsertBest(absl::Span<const float> logprobs, int64_t first_id,
                size_t count, std::vector<TokenLogprob>& top) {
  for (size_t i = 0; i < logprobs.size(); ++i) {
    const float logprob = logprobs[i];
    const bool full = top.size() == count;
    if (std::isnan(logprob) || (full && logprob <= top.back().logprob)) {
      continue;
    }
    if (full) top.pop_back();
    // Behind equal ones: they have lower ids.
    const auto place = std::upper_bound(
        top.begin(), top.end(), logprob,
        [](float value, const TokenLogprob& t) { return value > t.logprob; });
    top.insert(place, {static_cast<int32_t>(first_id + i), logprob});
  }
}

}  // namespace

double FullDistribution::ClusterMass(size_t c) {
  const absl::Span<const float> words = ClusterWords(c);
  const std::vector<double> widened(words.begin(), words.end());
  return ScaledLogSumExp(widened, 1);
}

float LogprobOf(NextTokenDistribution& distribution, int32_t id) {
  const std::vector<int64_t>& ends = distribution.bins().ends;
  if (id < ends[0]) return distribution.Words()[id];
  const size_t bin = distribution.bins().BinOf(id);
  return distribution.ClusterWords(bin - 1)[id - ends[bin - 1]];
}

std::vector<TokenLogprob> TopLogprobs(NextTokenDistribution& distribution,
                                      int count) {
  std::vector<TokenLogprob> top;
  if (count <= 0) return top;
  const size_t wanted = static_cast<size_t>(count);
  InsertBest(distribution.Words(), 0, wanted, top);
  const VocabularyBins& bins = distribution.bins();
  for (size_t c = 0; c < bins.clusters(); ++c) {
    if (top.size() == wanted &&
        distribution.ClusterMass(c) + kMassGuard < top.back().logprob) {
      continue;
    }
    InsertBest(distribution.ClusterWords(c), bins.ends[c], wanted, top);
  }
  return top;
}

void AppendLogprobs(NextTokenDistribution& distribution,
                    absl::Span<const int32_t> ids,
                    std::vector<TokenLogprob>& out) {
  for (const int32_t id : ids) {
    out.push_back({id, LogprobOf(distribution, id)});
  }
}

}  // namespace txl
