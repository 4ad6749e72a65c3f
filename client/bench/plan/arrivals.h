#pragma once

// When an open loop's requests start: decided before the run, whatever the
// server does.

#include <cstdint>

#include "client/bench/plan/distribution.h"

namespace txl::bench {

enum class ArrivalKind {
  kConstant,  // evenly spaced
  kPoisson,   // independent of each other
};

// The rate over time: from `ramp_from` it changes evenly to `rate` within the
// first `ramp_seconds`, then it stays.
struct RateProfile {
  double rate = 1;  // requests per second, > 0
  double ramp_from = 0;
  double ramp_seconds = 0;

  // Requests that are due until a time, on average. REQUIRES: seconds >= 0.
  double Due(double seconds) const;
  // The time by which so many are due: the inverse of Due.
  double TimeOf(double due) const;
};

// The arrivals of one run. Not thread-safe.
class Arrivals {
 public:
  Arrivals(ArrivalKind kind, const RateProfile& profile, uint64_t seed);
  // Seconds from the run's start to the next arrival; never less than the last.
  double Next();

 private:
  ArrivalKind kind_;
  RateProfile profile_;
  Random random_;
  // The next arrival of a process of rate 1 that the profile stretches.
  double due_ = 0;
};

}  // namespace txl::bench
