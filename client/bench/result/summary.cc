#include "client/bench/result/summary.h"

#include <algorithm>
#include <cmath>

namespace txl::bench {

LatencySummary Summarize(const Histogram& histogram) {
  const auto percentile = [&](double q) {
    return ToSeconds(histogram.Percentile(q));
  };
  return {.count = histogram.count(),
          .mean = histogram.mean() / static_cast<double>(kNanosPerSecond),
          .min = ToSeconds(histogram.min()),
          .p50 = percentile(0.5),
          .p90 = percentile(0.9),
          .p95 = percentile(0.95),
          .p99 = percentile(0.99),
          .p999 = percentile(0.999),
          .max = ToSeconds(histogram.max())};
}

namespace {

constexpr double kTail = 0.025;

int64_t CountOf(const Counted& values) {
  int64_t count = 0;
  for (const auto& [value, times] : values) count += times;
  return count;
}

// The smallest value that at least so many values do not exceed.
double AtRank(const Counted& values, double rank) {
  int64_t seen = 0;
  for (const auto& [value, times] : values) {
    seen += times;
    if (static_cast<double>(seen) >= rank) return value;
  }
  return values.back().first;
}

}  // namespace

double Resampling::Percentile(const Counted& values, double q) {
  const auto n = static_cast<double>(CountOf(values));
  const double k = std::clamp(std::ceil(q * n), 1.0, n);
  const double below = std::gamma_distribution<double>(k)(engine_);
  const double above = std::gamma_distribution<double>(n + 1 - k)(engine_);
  return AtRank(values, std::max(1.0, std::ceil(n * below / (below + above))));
}

double Resampling::Mean(const Counted& values) {
  double n = 0;
  double sum = 0;
  double squares = 0;
  for (const auto& [value, times] : values) {
    const auto count = static_cast<double>(times);
    n += count;
    sum += count * value;
    squares += count * value * value;
  }
  const double mean = sum / n;
  const double variance = std::max(0.0, squares / n - mean * mean);
  return mean +
         std::sqrt(variance / n) * std::normal_distribution<double>()(engine_);
}

double Resampling::BlockMean(const std::vector<double>& blocks) {
  std::uniform_int_distribution<size_t> pick(0, blocks.size() - 1);
  double sum = 0;
  for (size_t i = 0; i < blocks.size(); ++i) sum += blocks[pick(engine_)];
  return sum / static_cast<double>(blocks.size());
}

double Resampling::Share(int64_t met, int64_t count) {
  if (count == 0) return 0;
  const double share = static_cast<double>(met) / static_cast<double>(count);
  std::binomial_distribution<int64_t> draw(count, share);
  return static_cast<double>(draw(engine_)) / static_cast<double>(count);
}

Range MiddleOf(std::vector<double> draws) {
  std::sort(draws.begin(), draws.end());
  const auto n = static_cast<double>(draws.size());
  const auto at = [&](double q) {
    const double rank = std::clamp(std::ceil(q * n), 1.0, n);
    return draws[static_cast<size_t>(rank) - 1];
  };
  return {at(kTail), at(1 - kTail)};
}

}  // namespace txl::bench
