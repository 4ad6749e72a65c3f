#include "client/bench/result/summary.h"

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

}  // namespace txl::bench
