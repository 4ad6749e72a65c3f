#pragma once

// Random numbers by counter (philox.h), and a draw from weights.

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "model/sampling/philox.h"

namespace txl {

// One block of Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as
// easy as 1, 2, 3"); words in the order of Random123's known answers.
std::array<uint32_t, 4> Philox(const std::array<uint32_t, 4>& counter,
                               const std::array<uint32_t, 2>& key);

// The draws for one token, in order: draw 0, 1, 2, ...
class UniformSequence {
 public:
  UniformSequence(uint64_t seed, int64_t position)
      : seed_(seed), position_(position) {}

  double Next() { return UniformDraw(seed_, position_, next_draw_++); }

 private:
  uint64_t seed_;
  int64_t position_;
  uint32_t next_draw_ = 0;
};

// The first index whose running sum of weights exceeds `uniform` times the sum
// of all, so that index i has probability weights[i] / sum. Sums run in index
// order. A weight of 0 is never picked.
// REQUIRES: weights >= 0 and finite, one of them > 0; 0 <= uniform < 1.
size_t PickByWeight(absl::Span<const double> weights, double uniform);

}  // namespace txl
