#include "model/sampling/draw.h"

#include <Random123/philox.h>

#include <cmath>
#include <numeric>

namespace txl {
namespace {

constexpr int kMantissaBits = 53;

uint32_t Low(uint64_t value) { return static_cast<uint32_t>(value); }
uint32_t High(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

}  // namespace

std::array<uint32_t, 4> Philox(const std::array<uint32_t, 4>& counter,
                               const std::array<uint32_t, 2>& key) {
  const philox4x32_ctr_t words{
      {counter[0], counter[1], counter[2], counter[3]}};
  const philox4x32_key_t keys{{key[0], key[1]}};
  const philox4x32_ctr_t block = philox4x32(words, keys);
  return {block.v[0], block.v[1], block.v[2], block.v[3]};
}

double UniformDraw(uint64_t seed, int64_t position, uint32_t draw) {
  const uint64_t count = static_cast<uint64_t>(position);
  const std::array<uint32_t, 4> block =
      Philox({Low(count), High(count), draw, 0}, {Low(seed), High(seed)});
  const uint64_t bits = static_cast<uint64_t>(block[1]) << 32 | block[0];
  return std::ldexp(static_cast<double>(bits >> (64 - kMantissaBits)),
                    -kMantissaBits);
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
