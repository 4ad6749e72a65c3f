#pragma once

// A seed's whole life: a server, its random days, its end.

#include <cstdint>
#include <string>
#include <vector>

#include "tests/server/simulation/faults.h"

namespace txl::simulation {

struct SeedResult {
  std::string divergence;  // from the model; empty: none
  std::vector<std::string> trace;
  FaultCounts faults;
};

// The same seed gives the same, in the same build. `tracing`: with a line for
// everything that happens.
SeedResult RunSeed(uint64_t seed, bool tracing);

struct SeedsResult {
  int64_t run = 0;
  uint64_t diverging_seed = 0;  // the first one, where there is one
  std::string divergence;       // with the end of its trace
  FaultCounts faults;
};

// `count` seeds from `first` on, until one diverges.
SeedsResult RunSeeds(uint64_t first, int64_t count);

}  // namespace txl::simulation
