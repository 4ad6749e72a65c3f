#include "client/bench/result/backlog.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace txl::bench {
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
