#pragma once

// Whether a server kept up with an open loop.

#include <cstdint>
#include <string>
#include <vector>

#include "client/bench/measure/turn_record.h"

namespace txl::bench {

struct Backlog {
  // Turns that were due and not over, at the end of the arrivals.
  int64_t at_end = 0;
  // How it grew over the second half of the arrivals, turns per second.
  double growth = 0;
  double refused_share = 0;  // of the turns: rejected, not sent, incomplete
  // The rate was more than the server can do: turns were refused, or they piled
  // up by more than chance. `reason` says which.
  bool beyond_capacity = false;
  std::string reason;
};

// `turns`: those of an open loop that were due within [from, to). Beyond
// capacity: more than 1 % refused, or the second half's growth is more than
// 5 % of its turns and more than twice the root of their number (what Poisson
// arrivals vary by).
Backlog JudgeBacklog(const std::vector<TurnRecord>& turns, Nanos from,
                     Nanos to);

}  // namespace txl::bench
