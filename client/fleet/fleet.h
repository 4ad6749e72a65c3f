#pragma once

// Cells of one kind, and their figures together.

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/fleet/figures.h"
#include "client/fleet/options.h"

namespace txl::fleet {

struct FleetOptions {
  CellOptions cell;  // with the seed of the first
  int32_t cells = 1;
  // So many of them are simulated, one after the other, and stand for all:
  // cells share nothing.
  int32_t sample = 1;
};

struct FleetResult {
  FleetOptions options;
  Figures figures;               // of the sample
  int64_t sessions_touched = 0;  // of the sample

  // What the fleet has for one of the sample.
  double scale() const {
    return static_cast<double>(options.cells) / options.sample;
  }
  // Of the fleet: a count's, in a second.
  double PerSecond(double count) const {
    return count * scale() / figures.seconds;
  }
};

// Errors: as CheckCell; InvalidArgument for a larger sample than cells.
absl::StatusOr<FleetResult> SimulateFleet(const FleetOptions& options);

}  // namespace txl::fleet
