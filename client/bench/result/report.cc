#include "client/bench/result/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace txl::bench {
namespace {

constexpr int64_t kIntervals = 120;  // at most, of the series
constexpr Nanos kLagLimit = kNanosPerSecond / 200;
constexpr double kLagShare = 0.05;

struct Window {
  Nanos from = 0;
  Nanos to = 0;
  double seconds() const { return std::max(0.0, ToSeconds(to - from)); }
};

Window WindowOf(const RunOptions& run, const DriverResult& result) {
  Window window{FromSeconds(run.warmup_seconds), result.end};
  if (run.seconds > 0) {
    window.to = FromSeconds(run.seconds);
    if (result.interrupted) window.to = std::min(window.to, result.end);
  }
  return window;
}

void AddLatencies(const TurnRecord& turn, Report* report) {
  if (turn.outcome != Outcome::kNotSent) {
    report->dispatch_lag.Add(turn.sent - turn.scheduled);
  }
  if (!turn.ordinary()) return;
  if (turn.tokens > 0) {
    report->first_token.Add(turn.ToFirstToken());
    report->first_token_from_send.Add(turn.first_token - turn.sent);
  }
  if (turn.tokens > 1) report->per_token.Add(turn.PerToken());
  if (turn.outcome == Outcome::kOk) report->end_to_end.Add(turn.ToEnd());
}

// The width of the series' intervals: 1, 2 or 5 times a power of ten bins.
Nanos IntervalLength(Nanos end) {
  Nanos length = Timeline::kBin;
  for (int64_t i = 0; length * kIntervals < end; ++i) {
    length = i % 3 == 1 ? length / 2 * 5 : length * 2;
  }
  return length;
}

std::vector<Interval> MakeSeries(const DriverResult& result) {
  const Nanos length = IntervalLength(result.end);
  // The last one is at least half as long as the others: the rate of a few
  // milliseconds is chance.
  std::vector<Interval> series(
      std::max<int64_t>(1, (result.end + length / 2) / length));
  const auto last = static_cast<int64_t>(series.size()) - 1;
  const auto at = [&](Nanos time) -> Interval& {
    return series[std::clamp<int64_t>(time / length, 0, last)];
  };
  for (const TurnRecord& turn : result.turns) {
    ++at(turn.scheduled).due;
    ++at(turn.scheduled).running;
    --at(turn.end).running;
    if (turn.outcome == Outcome::kOk) {
      ++at(turn.end).ended;
    } else if (turn.outcome != Outcome::kCancelled) {
      ++at(turn.end).failed;
    }
  }
  int64_t running = 0;
  for (size_t i = 0; i < series.size(); ++i) {
    const Nanos start = static_cast<Nanos>(i) * length;
    const bool is_last = i + 1 == series.size();
    const Nanos end = is_last ? result.end : start + length;
    series[i].start = ToSeconds(start);
    series[i].seconds = ToSeconds(end - start);
    // What came with the end itself is in the last one.
    series[i].tokens =
        result.tokens.Between(start, is_last ? end + Timeline::kBin : end);
    running += series[i].running;
    series[i].running = running;
  }
  return series;
}

double PerSecond(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

// With the prompt's place.
std::string ErrorOf(const TurnRecord& turn, const Report& report) {
  const Prompt* prompt =
      PromptOf(report.options.run.workload, turn.conversation, turn.turn);
  return prompt == nullptr
             ? turn.error
             : absl::StrCat("prompt of line ", prompt->line, ": ", turn.error);
}

// Counts, rates and histograms; returns the measured turns.
std::vector<TurnRecord> AddTurns(const DriverResult& result,
                                 const Window& window, Report* report) {
  std::vector<TurnRecord> measured;
  int64_t ended_in_window = 0;
  for (const TurnRecord& turn : result.turns) {
    ++report->statuses[turn.status];
    if (!turn.error.empty()) {
      report->errors.emplace(turn.status, ErrorOf(turn, *report));
    }
    if (!turn.problem.empty()) ++report->problems[turn.problem];
    report->tokens += turn.tokens;
    ended_in_window += turn.outcome == Outcome::kOk &&
                       turn.end >= window.from && turn.end <= window.to;
    if (turn.scheduled < window.from) continue;
    ++report->outcomes[OutcomeName(turn.outcome)];
    AddLatencies(turn, report);
    measured.push_back(turn);
  }
  const auto due = static_cast<int64_t>(measured.size());
  report->requests = static_cast<int64_t>(result.turns.size());
  report->measured = due;
  report->offered_per_second = PerSecond(due, window.seconds());
  report->requests_per_second = PerSecond(ended_in_window, window.seconds());
  report->tokens_per_second = PerSecond(
      result.tokens.Between(window.from, window.to), window.seconds());
  return measured;
}

}  // namespace

bool Report::client_bound() const {
  const Nanos lag = dispatch_lag.Percentile(0.99);
  return first_token.count() > 0 && lag > kLagLimit &&
         static_cast<double>(lag) >
             kLagShare * static_cast<double>(first_token.Percentile(0.5));
}

Report MakeReport(const LoadResult& load, const Limits& limits) {
  const DriverResult& result = load.result;
  const RunOptions& run = load.options.run;
  const Window window = WindowOf(run, result);
  Report report;
  report.options = load.options;
  report.model = load.model;
  report.fingerprint = load.fingerprint;
  report.server_version = load.server_version;
  report.start = load.start;
  report.host = load.host;
  report.limits = limits;
  report.usage = load.usage;
  report.server = load.server;
  report.seconds = window.seconds();
  report.inter_token = result.gaps;
  const std::vector<TurnRecord> measured = AddTurns(result, window, &report);
  if (limits.any()) report.goodput = CountGoodput(limits, measured);
  if (run.mode == Mode::kOpen) {
    report.backlog = JudgeBacklog(measured, window.from, window.to);
  }
  report.stalls =
      FindStalls(result.tokens, result.turns, window.from,
                 StallThreshold(report.inter_token.Percentile(0.5),
                                report.first_token.Percentile(0.5)));
  report.series = MakeSeries(result);
  return report;
}

}  // namespace txl::bench
