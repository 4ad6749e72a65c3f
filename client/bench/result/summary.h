#pragma once

// The figures of a histogram that people and JSON get.

#include <cstdint>

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

}  // namespace txl::bench
