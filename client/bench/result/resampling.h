#pragma once

// Confidence intervals by bootstrap: the values of a run are drawn anew, with
// replacement and as many as there were, and the figure is taken again.

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace txl::bench {

// A value and how often it was seen, values ascending.
using Counted = std::vector<std::pair<double, int64_t>>;

// One draw of each figure. Not thread-safe.
class Resampling {
 public:
  explicit Resampling(uint64_t seed) : engine_(seed) {}

  // The nearest-rank percentile of a resample. Without drawing it: the k-th
  // smallest of n uniform numbers is distributed as Beta(k, n + 1 - k), and the
  // resample's is the value at that share. REQUIRES: values, q in (0, 1].
  double Percentile(const Counted& values, double q);
  // The mean of a resample of that many values; by its normal limit.
  double Mean(const Counted& values);
  // The mean of a resample of a few blocks. REQUIRES: not empty.
  double BlockMean(const std::vector<double>& blocks);
  // The share of a resample of `count` trials of which `met` were met.
  double Share(int64_t met, int64_t count);

 private:
  std::mt19937_64 engine_;
};

struct Range {
  double low = 0;
  double high = 0;
};

// The middle 95 % of draws; sorts them. REQUIRES: not empty.
Range MiddleOf(std::vector<double> draws);

}  // namespace txl::bench
