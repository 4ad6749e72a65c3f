#pragma once

// Random numbers by counter, and a draw from weights.

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "model/base/anywhere.h"

namespace txl {

// Random numbers by counter, as arithmetic that devices share with the host
// (draw.h has the interface for the host).

struct PhiloxBlock {
  uint32_t words[4];
};

// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2,
// 3"): ten rounds, each of two 32 x 32 -> 64 bit products; the key grows by a
// constant between rounds.
TXL_ANYWHERE PhiloxBlock PhiloxRounds(PhiloxBlock counter, uint32_t key_low,
                                      uint32_t key_high) {
  uint32_t* c = counter.words;
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xd2511f53u} * c[0];
    const uint64_t second = uint64_t{0xcd9e8d57u} * c[2];
    c[0] = static_cast<uint32_t>(second >> 32) ^ c[1] ^ key_low;
    c[1] = static_cast<uint32_t>(second);
    c[2] = static_cast<uint32_t>(first >> 32) ^ c[3] ^ key_high;
    c[3] = static_cast<uint32_t>(first);
    key_low += 0x9e3779b9u;
    key_high += 0xbb67ae85u;
  }
  return counter;
}

// Draw number `draw` for the token at absolute position `position`, uniform in
// [0, 1). With o = Philox(counter = (position mod 2^32, position / 2^32, draw,
// 0), key = (seed mod 2^32, seed / 2^32)): the upper 53 of the 64 bits of
// o[0] + 2^32 o[1], divided by 2^53.
TXL_ANYWHERE double UniformDraw(uint64_t seed, int64_t position,
                                uint32_t draw) {
  const uint64_t count = static_cast<uint64_t>(position);
  const PhiloxBlock block = PhiloxRounds(
      {{static_cast<uint32_t>(count), static_cast<uint32_t>(count >> 32), draw,
        0}},
      static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
  const uint64_t bits =
      static_cast<uint64_t>(block.words[1]) << 32 | block.words[0];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

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
