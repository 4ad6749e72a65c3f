#pragma once

// Moments at which the server stood still.

#include <cstdint>
#include <vector>

#include "client/bench/measure/timeline.h"
#include "client/bench/measure/turn_record.h"

namespace txl::bench {

// No stream got a token although turns ran.
struct Stall {
  Nanos start = 0;  // since the run's start, exact to Timeline::kBin
  Nanos length = 0;
  // Measured turns that were due before its end and over after its start.
  int64_t hit = 0;
};

// Those of at least `threshold`, longest first. `turns`: of the whole run;
// those that were due from `measured_from` on are measured.
std::vector<Stall> FindStalls(const Timeline& tokens,
                              const std::vector<TurnRecord>& turns,
                              Nanos measured_from, Nanos threshold);

// A pause that long is not the server's usual one: ten times the median time
// between tokens, twice the median time to the first one, at least 0.25 s.
Nanos StallThreshold(Nanos median_gap, Nanos median_first);

}  // namespace txl::bench
