#include "client/bench/result/goodput.h"

namespace txl::bench {
namespace {

bool Over(Nanos time, double limit) { return ToSeconds(time) > limit; }

}  // namespace

double Goodput::share() const {
  return judged == 0 ? 0
                     : static_cast<double>(met) / static_cast<double>(judged);
}

bool Meets(const Limits& limits, const TurnRecord& turn) {
  return turn.outcome == Outcome::kOk &&
         !Over(turn.ToFirstToken(), limits.time_to_first_token) &&
         !Over(turn.longest_gap, limits.inter_token) &&
         !Over(turn.PerToken(), limits.per_token) &&
         !Over(turn.ToEnd(), limits.end_to_end);
}

Goodput CountGoodput(const Limits& limits,
                     const std::vector<TurnRecord>& turns) {
  Goodput goodput;
  for (const TurnRecord& turn : turns) {
    if (!turn.ordinary()) continue;
    ++goodput.judged;
    if (turn.outcome != Outcome::kOk) {
      ++goodput.did_not_end;
      continue;
    }
    goodput.met += Meets(limits, turn);
    goodput.missed_first +=
        Over(turn.ToFirstToken(), limits.time_to_first_token);
    goodput.missed_inter_token += Over(turn.longest_gap, limits.inter_token);
    goodput.missed_per_token += Over(turn.PerToken(), limits.per_token);
    goodput.missed_end_to_end += Over(turn.ToEnd(), limits.end_to_end);
  }
  return goodput;
}

}  // namespace txl::bench
