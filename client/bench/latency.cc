#include "client/bench/latency.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace txl::bench {

double Percentile(const std::vector<double>& sorted, double q) {
  const auto count = static_cast<double>(sorted.size());
  const auto rank = static_cast<int64_t>(std::ceil(q * count));
  const auto last = static_cast<int64_t>(sorted.size());
  return sorted[std::clamp<int64_t>(rank, 1, last) - 1];
}

LatencySummary Summarize(std::vector<double> samples) {
  LatencySummary summary;
  if (samples.empty()) return summary;
  std::sort(samples.begin(), samples.end());
  summary.count = static_cast<int64_t>(samples.size());
  summary.mean = std::accumulate(samples.begin(), samples.end(), 0.0) /
                 static_cast<double>(samples.size());
  summary.p50 = Percentile(samples, 0.5);
  summary.p90 = Percentile(samples, 0.9);
  summary.p99 = Percentile(samples, 0.99);
  summary.max = samples.back();
  return summary;
}

}  // namespace txl::bench
