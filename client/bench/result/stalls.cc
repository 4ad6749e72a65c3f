#include "client/bench/result/stalls.h"

#include <algorithm>
#include <utility>

namespace txl::bench {
namespace {

constexpr Nanos kLeast = kNanosPerSecond / 4;

using Stretch = std::pair<Nanos, Nanos>;

// When at least one turn ran, in order and without overlap.
std::vector<Stretch> BusyTimes(const std::vector<TurnRecord>& turns) {
  std::vector<Stretch> times;
  for (const TurnRecord& turn : turns) {
    if (turn.outcome != Outcome::kNotSent) {
      times.emplace_back(turn.sent, turn.end);
    }
  }
  std::sort(times.begin(), times.end());
  std::vector<Stretch> merged;
  for (const Stretch& time : times) {
    if (merged.empty() || time.first > merged.back().second) {
      merged.push_back(time);
    } else {
      merged.back().second = std::max(merged.back().second, time.second);
    }
  }
  return merged;
}

// Runs of at least `threshold` without a token, up to `end`.
std::vector<Stretch> QuietTimes(const Timeline& tokens, Nanos end,
                                Nanos threshold) {
  std::vector<Stretch> quiet;
  Nanos from = 0;
  for (size_t i = 0; i < tokens.bins().size(); ++i) {
    if (tokens.bins()[i] == 0) continue;
    const Nanos at = static_cast<Nanos>(i) * Timeline::kBin;
    if (at - from >= threshold) quiet.emplace_back(from, at);
    from = at + Timeline::kBin;
  }
  if (end - from >= threshold) quiet.emplace_back(from, end);
  return quiet;
}

int64_t CountHit(const std::vector<TurnRecord>& turns, Nanos measured_from,
                 const Stretch& stall) {
  return std::count_if(turns.begin(), turns.end(), [&](const TurnRecord& turn) {
    return turn.scheduled >= measured_from && turn.scheduled < stall.second &&
           turn.end > stall.first;
  });
}

}  // namespace

std::vector<Stall> FindStalls(const Timeline& tokens,
                              const std::vector<TurnRecord>& turns,
                              Nanos measured_from, Nanos threshold) {
  std::vector<Stall> stalls;
  const std::vector<Stretch> busy = BusyTimes(turns);
  if (busy.empty()) return stalls;
  for (const Stretch& quiet :
       QuietTimes(tokens, busy.back().second, threshold)) {
    for (const Stretch& time : busy) {
      const Stretch both(std::max(quiet.first, time.first),
                         std::min(quiet.second, time.second));
      if (both.second - both.first >= threshold) {
        stalls.push_back({both.first, both.second - both.first,
                          CountHit(turns, measured_from, both)});
      }
    }
  }
  std::stable_sort(
      stalls.begin(), stalls.end(),
      [](const Stall& a, const Stall& b) { return a.length > b.length; });
  return stalls;
}

Nanos StallThreshold(Nanos median_gap, Nanos median_first) {
  return std::max({kLeast, 10 * median_gap, 2 * median_first});
}

}  // namespace txl::bench
