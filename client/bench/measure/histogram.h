#pragma once

// Counts of times in buckets whose width grows with the time (the scheme of
// HdrHistogram): a percentile is exact to its bucket's width, adding costs no
// memory, and merging loses nothing.

#include <cstdint>
#include <vector>

#include "client/bench/measure/turn_record.h"

namespace txl::bench {

// Not thread-safe.
class Histogram {
 public:
  // Buckets are 1 ns wide below 512 ns, above it at most 1/256 of their lower
  // end.
  static int64_t IndexOf(Nanos value);  // REQUIRES: value >= 0
  static Nanos LowerEnd(int64_t index);
  static Nanos Width(int64_t index);  // values of it: LowerEnd + [0, Width)

  // Negative values count as 0.
  void Add(Nanos value, int64_t times = 1);
  void Merge(const Histogram& other);

  int64_t count() const { return count_; }
  // Extremes and mean of the values themselves; 0 without any.
  Nanos min() const { return count_ == 0 ? 0 : min_; }
  Nanos max() const { return max_; }
  double mean() const;
  // Nearest rank: the smallest value that at least the share q of all values
  // does not exceed, given as the highest value of its bucket, or `max` if that
  // is less. 0 without values. REQUIRES: q in (0, 1].
  Nanos Percentile(double q) const;

  // Values in each bucket, from 0 to the highest used one.
  const std::vector<int64_t>& buckets() const { return buckets_; }

 private:
  std::vector<int64_t> buckets_;
  int64_t count_ = 0;
  Nanos min_ = 0;
  Nanos max_ = 0;
  double sum_ = 0;
};

}  // namespace txl::bench
