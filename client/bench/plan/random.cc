#include "client/bench/plan/random.h"

#include <cmath>
#include <vector>

namespace txl::bench {
namespace {

std::mt19937_64 MakeEngine(std::initializer_list<uint64_t> key) {
  std::vector<uint32_t> words;
  for (const uint64_t word : key) {
    words.push_back(static_cast<uint32_t>(word));
    words.push_back(static_cast<uint32_t>(word >> 32));
  }
  std::seed_seq seed(words.begin(), words.end());
  return std::mt19937_64(seed);
}

}  // namespace

// The standard's distributions differ between libraries, its engine does not.
Random::Random(std::initializer_list<uint64_t> key)
    : engine_(MakeEngine(key)) {}

uint64_t Random::Bits() { return engine_(); }

double Random::Uniform() {
  constexpr double kUnit = 1.0 / static_cast<double>(uint64_t{1} << 53);
  return static_cast<double>(engine_() >> 11) * kUnit;
}

double Random::Exponential() { return -std::log1p(-Uniform()); }

double Random::Normal() {
  constexpr double kTwoPi = 6.283185307179586;
  const double radius = std::sqrt(2 * Exponential());
  return radius * std::cos(kTwoPi * Uniform());
}

}  // namespace txl::bench
