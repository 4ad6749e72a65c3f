#pragma once

// How many tokens came when.

#include <cstdint>
#include <vector>

#include "client/bench/measure/nanos.h"

namespace txl::bench {

// Not thread-safe.
class Timeline {
 public:
  static constexpr Nanos kBin = kNanosPerSecond / 100;

  // `time` since the run's start; earlier ones count as 0.
  void Add(Nanos time, int64_t tokens);
  void Merge(const Timeline& other);

  // Tokens of [i, i + 1) times kBin, from the run's start to the last token.
  const std::vector<int64_t>& bins() const { return bins_; }
  // Tokens of the bins that begin within [from, to).
  int64_t Between(Nanos from, Nanos to) const;

 private:
  std::vector<int64_t> bins_;
};

}  // namespace txl::bench
