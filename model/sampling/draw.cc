#include "model/sampling/draw.h"

#include <numeric>

namespace txl {

std::array<uint32_t, 4> Philox(const std::array<uint32_t, 4>& counter,
                               const std::array<uint32_t, 2>& key) {
  const PhiloxBlock block = PhiloxRounds(
      {{counter[0], counter[1], counter[2], counter[3]}}, key[0], key[1]);
  return {block.words[0], block.words[1], block.words[2], block.words[3]};
}

size_t PickByWeight(absl::Span<const double> weights, double uniform) {
  const double target =
      uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  size_t last_possible = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0) continue;
    sum += weights[i];
    if (target < sum) return i;
    last_possible = i;
  }
  return last_possible;
}

}  // namespace txl
