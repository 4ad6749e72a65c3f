#pragma once

// How many turns were fast enough.

#include <cstdint>
#include <vector>

#include "client/bench/measure/turn_record.h"
#include "client/bench/plan/limits.h"

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

}  // namespace txl::bench
