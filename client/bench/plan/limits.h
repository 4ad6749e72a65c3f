#pragma once

// What a user calls fast enough.

#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace txl::bench {

// Upper limits in seconds; a turn is good when it ends well within all of them.
struct Limits {
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  double time_to_first_token = kNone;
  double inter_token = kNone;  // of the longest gap of the turn
  double per_token = kNone;    // of the mean gap of the turn
  double end_to_end = kNone;

  bool any() const;
};

// Each as NAME=DURATION with ttft, itl, tpot or e2e and a unit ("ttft=200ms").
// Errors: InvalidArgument for anything else and for a name given twice.
absl::StatusOr<Limits> ParseLimits(const std::vector<std::string>& texts);

}  // namespace txl::bench
