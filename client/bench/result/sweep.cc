#include "client/bench/result/sweep.h"

#include <utility>

namespace txl::bench {

bool IsGoodRun(const Report& report, double good_share) {
  const bool fast = report.goodput && report.goodput->judged > 0 &&
                    report.goodput->share() >= good_share;
  const bool kept_up = !report.backlog || !report.backlog->beyond_capacity;
  return fast && kept_up;
}

const Report* MainRun(const Sweep& sweep) {
  const Report* best = nullptr;
  for (const Report& run : sweep.runs) {
    if (sweep.capacity && run.options.run.rate.rate == sweep.capacity->good) {
      return &run;
    }
    if (best == nullptr || run.tokens_per_second > best->tokens_per_second) {
      best = &run;
    }
  }
  return best;
}

absl::StatusOr<Sweep> RunRates(const std::vector<double>& rates,
                               const RunAtRate& run) {
  Sweep sweep;
  for (const double rate : rates) {
    absl::StatusOr<Report> report = run(rate);
    if (!report.ok()) return report.status();
    sweep.runs.push_back(*std::move(report));
  }
  return sweep;
}

absl::StatusOr<Sweep> SearchCapacity(const CapacitySearch& search,
                                     double good_share, const RunAtRate& run) {
  Sweep sweep;
  sweep.good_share = good_share;
  std::vector<Trial> trials;
  while (const auto rate = NextRate(search, trials)) {
    absl::StatusOr<Report> report = run(*rate);
    if (!report.ok()) return report.status();
    trials.push_back({*rate, IsGoodRun(*report, good_share)});
    sweep.runs.push_back(*std::move(report));
  }
  sweep.capacity = CapacityOf(search, trials);
  return sweep;
}

}  // namespace txl::bench
