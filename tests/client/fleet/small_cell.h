#pragma once

// A cell in which nothing costs anything but what a test gives a cost, and the
// formulas that its figures are compared with.

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "client/fleet/cell.h"

namespace txl::fleet {

inline bench::Distribution Lengths(const char* text) {
  return *bench::Distribution::Parse(text);
}

// One server, slots for everybody, a token of each stream every millisecond.
inline CellOptions SmallCell() {
  constexpr double kNothing = 1e-9;
  CellOptions cell;
  cell.server.device = {*StepCosts::Parse({"1:0.001", "100000:0.001"}),
                        kNothing, 1};
  cell.server.slots = 100'000;
  cell.store.costs.command_seconds = kNothing;
  cell.store.append_tokens = 1'000'000;
  cell.store.append_seconds = 1e6;
  cell.store.upkeep_seconds = 0;
  cell.mix.sessions = 1'000'000'000;
  cell.seconds = 1000;
  return cell;
}

inline Figures RunCell(const CellOptions& options) {
  return Cell(&options).Run();
}

// How often a list of so many keys has the one that is used, of n keys with
// Zipf's probabilities: Che's approximation (Che, Tung, Wang, "Hierarchical Web
// caching systems", 2002). A key stays for the time t in which `capacity`
// different ones are used: the sum of 1 - exp(-p t) is `capacity`, and the hit
// rate is the sum of p (1 - exp(-p t)).
inline double CheHitRate(int64_t n, double exponent, double capacity) {
  std::vector<double> weights;
  double all = 0;
  for (int64_t k = 1; k <= n; ++k) {
    weights.push_back(std::pow(static_cast<double>(k), -exponent));
    all += weights.back();
  }
  const auto sums = [&](double t) {
    double kept = 0;
    double hits = 0;
    for (const double weight : weights) {
      const double there = -std::expm1(-weight / all * t);
      kept += there;
      hits += weight / all * there;
    }
    return std::pair(kept, hits);
  };
  double low = 0;
  double high = 1e9;
  for (int i = 0; i < 100; ++i) {
    const double t = (low + high) / 2;
    (sums(t).first < capacity ? low : high) = t;
  }
  return sums(low).second;
}

}  // namespace txl::fleet
