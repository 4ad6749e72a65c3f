#include "client/bench/plan/capacity_search.h"

#include <algorithm>
#include <cmath>

namespace txl::bench {
namespace {

constexpr double kFarthest = 1000;

}  // namespace

Capacity CapacityOf(const CapacitySearch& search,
                    const std::vector<Trial>& trials) {
  Capacity capacity;
  for (const Trial& trial : trials) {
    if (!trial.good) capacity.bad = std::min(capacity.bad, trial.rate);
  }
  for (const Trial& trial : trials) {
    if (trial.good && trial.rate < capacity.bad) {
      capacity.good = std::max(capacity.good, trial.rate);
    }
  }
  capacity.exact = capacity.good > 0 &&
                   capacity.bad <= capacity.good * (1 + search.tolerance);
  return capacity;
}

std::optional<double> NextRate(const CapacitySearch& search,
                               const std::vector<Trial>& trials) {
  if (trials.empty()) return search.first_rate;
  const Capacity capacity = CapacityOf(search, trials);
  if (capacity.exact || static_cast<int>(trials.size()) >= search.max_trials) {
    return std::nullopt;
  }
  double next = std::sqrt(capacity.good * capacity.bad);
  if (std::isinf(capacity.bad)) {
    next = capacity.good * 2;
  } else if (capacity.good == 0) {
    next = capacity.bad / 2;
  }
  if (next > search.first_rate * kFarthest ||
      next < search.first_rate / kFarthest) {
    return std::nullopt;
  }
  return next;
}

}  // namespace txl::bench
