#pragma once

// Several runs of an open loop, at one rate each.

#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/bench/plan/capacity_search.h"
#include "client/bench/result/report.h"

namespace txl::bench {

// A rate is good when that share of its turns meets the limits and the server
// keeps up. A tester that is late makes a rate look worse, never better, as
// times count from when a turn was due.
bool IsGoodRun(const Report& report, double good_share);

struct Sweep {
  std::vector<Report> runs;  // in the order in which they ran
  // What a search found.
  std::optional<Capacity> capacity;
  double good_share = 0;
};

// The run that a sweep is about: at its capacity, else the fastest one. Null
// without runs.
const Report* MainRun(const Sweep& sweep);

using RunAtRate = std::function<absl::StatusOr<Report>(double rate)>;

// One run for each rate. Errors: the first of a run.
absl::StatusOr<Sweep> RunRates(const std::vector<double>& rates,
                               const RunAtRate& run);
// Searches the highest good rate.
absl::StatusOr<Sweep> SearchCapacity(const CapacitySearch& search,
                                     double good_share, const RunAtRate& run);

}  // namespace txl::bench
