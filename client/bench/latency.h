#pragma once

// Percentiles of measured times.

#include <cstdint>
#include <vector>

namespace txl::bench {

// Seconds, except count. All 0 when there are no samples.
struct LatencySummary {
  int64_t count = 0;
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;
};

// Nearest rank: the smallest sample that at least the share q of all samples
// does not exceed. REQUIRES: sorted ascending, not empty, q in (0, 1].
double Percentile(const std::vector<double>& sorted, double q);

LatencySummary Summarize(std::vector<double> samples);

}  // namespace txl::bench
