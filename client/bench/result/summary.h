#pragma once

// The figures of a histogram that people and JSON get.

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "client/bench/measure/histogram.h"

namespace txl::bench {

// Seconds, except count. All 0 when there are no values. Percentiles by nearest
// rank, exact to the width of a bucket (1/256 of the value).
struct LatencySummary {
  int64_t count = 0;
  double mean = 0;
  double min = 0;
  double p50 = 0;
  double p90 = 0;
  double p95 = 0;
  double p99 = 0;
  double p999 = 0;
  double max = 0;
};

LatencySummary Summarize(const Histogram& histogram);

// Confidence intervals by bootstrap: the values of a run are resampled, with
// replacement and as many as there were, and the figure is computed again.

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
