#pragma once

// How many turns were fast enough.

#include <cstdint>
#include <string>
#include <vector>

#include "client/bench/measure/turn_record.h"
#include "client/bench/plan/workload.h"

namespace txl::bench {

// How many ordinary turns met the limits. A turn may miss several.
struct Goodput {
  int64_t judged = 0;
  int64_t met = 0;           // ended well within every limit
  int64_t did_not_end = 0;   // or not well: refused, failed, not sent, ...
  int64_t missed_first = 0;  // limits missed by turns that ended well
  int64_t missed_inter_token = 0;
  int64_t missed_per_token = 0;
  int64_t missed_end_to_end = 0;

  double share() const;  // of the judged ones; 0 without any
};

bool Meets(const Limits& limits, const TurnRecord& turn);
Goodput CountGoodput(const Limits& limits,
                     const std::vector<TurnRecord>& turns);

// Moments at which the server stood still.

// No stream got a token although turns ran.
struct Stall {
  Nanos start = 0;  // since the run's start, exact to Timeline::kBin
  Nanos length = 0;
  // Measured turns that were due before its end and over after its start.
  int64_t hit = 0;
};

// Stalls of at least `threshold`, longest first. `turns` has all turns of the
// run; a turn is measured if it was due at `measured_from` or later.
std::vector<Stall> FindStalls(const Timeline& tokens,
                              const std::vector<TurnRecord>& turns,
                              Nanos measured_from, Nanos threshold);

// A pause that long is not the server's usual one: ten times the median time
// between tokens, twice the median time to the first one, at least 0.25 s.
Nanos StallThreshold(Nanos median_gap, Nanos median_first);

// Whether a server kept up with an open loop.

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
