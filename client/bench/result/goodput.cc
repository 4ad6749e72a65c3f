#include "client/bench/result/goodput.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"

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

namespace {

constexpr int kSamples = 64;
constexpr double kRefusedShare = 0.01;
constexpr double kGrowthShare = 0.05;

bool IsRefused(const TurnRecord& turn) {
  return turn.outcome == Outcome::kRejected ||
         turn.outcome == Outcome::kNotSent ||
         turn.outcome == Outcome::kIncomplete;
}

// The slope of the least-squares line through backlogs at evenly spaced times.
double Slope(const std::vector<double>& values, double step) {
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  double weighted = 0;
  double squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i) - (n - 1) / 2;
    sum += values[i];
    weighted += x * values[i];
    squares += x * x;
  }
  return squares == 0 ? 0 : weighted / squares / step;
}

}  // namespace

Backlog JudgeBacklog(const std::vector<TurnRecord>& turns, Nanos from,
                     Nanos to) {
  Backlog backlog;
  if (turns.empty() || to <= from) return backlog;
  std::vector<Nanos> starts;
  std::vector<Nanos> ends;
  int64_t refused = 0;
  for (const TurnRecord& turn : turns) {
    refused += IsRefused(turn);
    if (turn.outcome == Outcome::kNotSent) continue;
    starts.push_back(turn.scheduled);
    ends.push_back(turn.end);
  }
  std::sort(starts.begin(), starts.end());
  std::sort(ends.begin(), ends.end());
  const auto until = [](const std::vector<Nanos>& times, Nanos time) {
    return std::upper_bound(times.begin(), times.end(), time) - times.begin();
  };
  const Nanos middle = from + (to - from) / 2;
  std::vector<double> backlogs;
  for (int i = 0; i <= kSamples; ++i) {
    const Nanos at = middle + (to - middle) * i / kSamples;
    backlogs.push_back(
        static_cast<double>(until(starts, at) - until(ends, at)));
  }
  const double seconds = ToSeconds(to - middle);
  const auto due =
      static_cast<double>(until(starts, to) - until(starts, middle));
  backlog.at_end = std::llround(backlogs.back());
  backlog.growth = Slope(backlogs, seconds / kSamples);
  backlog.refused_share =
      static_cast<double>(refused) / static_cast<double>(turns.size());
  const double grown = backlog.growth * seconds;
  if (backlog.refused_share > kRefusedShare) {
    backlog.reason =
        absl::StrFormat("%.1f %% of the turns were refused or did not end",
                        100 * backlog.refused_share);
  } else if (grown > kGrowthShare * due && grown > 2 * std::sqrt(due)) {
    backlog.reason =
        absl::StrFormat("turns piled up by %.1f a second", backlog.growth);
  }
  backlog.beyond_capacity = !backlog.reason.empty();
  return backlog;
}

}  // namespace txl::bench
