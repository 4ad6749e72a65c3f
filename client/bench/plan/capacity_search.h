#pragma once

// Which rate to try next in the search for the highest that is fast enough.

#include <limits>
#include <optional>
#include <vector>

namespace txl::bench {

struct CapacitySearch {
  double first_rate = 1;  // requests per second, > 0
  // Done when the lowest rate that is too much is at most so much more than the
  // highest that is not, as a share of it.
  double tolerance = 0.05;
  int max_trials = 20;
};

struct Trial {
  double rate = 0;
  bool good = false;  // fast enough
};

// What is known from trials. One that is good although a lower rate was not is
// luck, and does not count.
struct Capacity {
  double good = 0;  // highest good rate; 0: none
  double bad = std::numeric_limits<double>::infinity();  // lowest bad rate
  bool exact = false;  // they are within the tolerance of each other
};

Capacity CapacityOf(const CapacitySearch& search,
                    const std::vector<Trial>& trials);

// Doubles (or halves) until there is a good and a bad rate, then goes to their
// geometric mean. Absent: the search is over; also below 1/1000 of the first
// rate, above 1000 times it, and after max_trials.
std::optional<double> NextRate(const CapacitySearch& search,
                               const std::vector<Trial>& trials);

}  // namespace txl::bench
