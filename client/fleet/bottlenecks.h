#pragma once

// Which part of a fleet is full first, and which one next.

#include <string>
#include <vector>

#include "client/fleet/figures.h"
#include "client/fleet/options.h"

namespace txl::fleet {

struct Bottleneck {
  std::string part;
  double load = 0;  // 1: it can do no more
  // Turns a second at which it would be full, were the load in proportion to
  // them; 0 where it has no load.
  double turns_per_second = 0;
};

// The fullest first. Loads are those that no waiting together can lower:
//   devices  tokens and rows at their cheapest, in companies that fill the
//            slots, over all seconds of all servers
//   slots    slots that turns have, on average, over all: they grow faster
//            than in proportion, as fuller companies take longer steps
//   store    commands times command_seconds: a round's commit is shared by
//            all that wait for it
//   images   seconds in which the way to the shared ones is in use
// `turns_per_second` is what the figures were made with.
std::vector<Bottleneck> FindBottlenecks(const Figures& figures,
                                        const CellOptions& options,
                                        double turns_per_second);

}  // namespace txl::fleet
