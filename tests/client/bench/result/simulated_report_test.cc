// Whole load tests on simulated time, against a server whose latencies are
// programmed: what the reports say is what happened.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "client/bench/result/report.h"
#include "client/bench/result/summary.h"
#include "client/bench/result/sweep.h"
#include "tests/client/bench/simulated_run.h"

namespace txl::bench {
namespace {

// Latencies that follow no pattern, by number.
class Programmed {
 public:
  Programmed(uint64_t seed, double log_mean, double deviation)
      : seed_(seed), draw_(log_mean, deviation) {}
  Nanos operator()(int64_t turn, int64_t token) {
    std::mt19937_64 random(seed_ + 1'000'003 * static_cast<uint64_t>(turn) +
                           static_cast<uint64_t>(token));
    draw_.reset();
    return static_cast<Nanos>(draw_(random));
  }

 private:
  uint64_t seed_;
  std::lognormal_distribution<double> draw_;
};

// Nearest rank on the values themselves.
Nanos Exact(std::vector<Nanos> values, double q) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  return values[static_cast<size_t>(std::max(1.0, std::ceil(q * n))) - 1];
}

void ExpectExactToABucket(const Histogram& reported,
                          const std::vector<Nanos>& exact) {
  ASSERT_EQ(reported.count(), static_cast<int64_t>(exact.size()));
  for (const double q : {0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0}) {
    const Nanos value = Exact(exact, q);
    EXPECT_GE(reported.Percentile(q), value) << q;
    EXPECT_LT(reported.Percentile(q),
              value + Histogram::Width(Histogram::IndexOf(value)))
        << q;
  }
  const LatencySummary summary = Summarize(reported);
  EXPECT_DOUBLE_EQ(summary.max, ToSeconds(Exact(exact, 1)));
  EXPECT_DOUBLE_EQ(summary.p99, ToSeconds(reported.Percentile(0.99)));
}

TEST(ReportedPercentiles, AreTheProgrammedLatenciesToTheWidthOfABucket) {
  constexpr int64_t kTokens = 20;
  Programmed first(1, 18, 1);  // about 65 ms
  Programmed gaps(2, 16, 0.7);
  SimulatedServer server;
  server.first_token = [&](int64_t turn) { return first(turn, 0); };
  server.gap = [&](int64_t turn, int64_t token) { return gaps(turn, token); };
  for (const ArrivalKind kind :
       {ArrivalKind::kConstant, ArrivalKind::kPoisson}) {
    RunOptions options = ConstantRate(40, 50);
    options.arrivals = kind;
    options.workload.max_tokens = Distribution::Fixed(kTokens);
    const Report report = SimulatedReport(options, server);
    std::vector<Nanos> to_first;
    std::vector<Nanos> between;
    std::vector<Nanos> mean_gap;
    std::vector<Nanos> to_end;
    for (int64_t turn = 0; turn < report.requests; ++turn) {
      to_first.push_back(first(turn, 0));
      Nanos sum = 0;
      for (int64_t token = 1; token < kTokens; ++token) {
        between.push_back(gaps(turn, token));
        sum += between.back();
      }
      mean_gap.push_back(sum / (kTokens - 1));
      to_end.push_back(to_first.back() + sum);
    }
    EXPECT_GT(report.requests, 1500);
    ExpectExactToABucket(report.first_token, to_first);
    ExpectExactToABucket(report.first_token_from_send, to_first);
    ExpectExactToABucket(report.inter_token, between);
    ExpectExactToABucket(report.per_token, mean_gap);
    ExpectExactToABucket(report.end_to_end, to_end);
    EXPECT_EQ(report.dispatch_lag.max(), 0);
    EXPECT_EQ(report.tokens, report.requests * kTokens);
  }
}

// 20 ms a turn, and one second in which nothing happens.
SimulatedServer Stalling() {
  SimulatedServer server;
  server.first_token = [](int64_t) { return 20 * kMs; };
  server.stalls = {{5000 * kMs, 1000 * kMs}};
  return server;
}

TEST(AStall, ShowsInAnOpenLoopWithTheShareOfRequestsThatItHit) {
  const Report report = SimulatedReport(ConstantRate(100, 10), Stalling());
  ASSERT_EQ(report.measured, 1000);
  ASSERT_EQ(report.stalls.size(), 1u);
  // The last token before it came at 4.99 + 0.01 s, the next one at 6.00 s:
  // those due at 4.99 s and until 5.99 s were hit.
  EXPECT_NEAR(ToSeconds(report.stalls[0].start), 5, 0.02);
  EXPECT_NEAR(ToSeconds(report.stalls[0].length), 1, 0.03);
  EXPECT_NEAR(static_cast<double>(report.stalls[0].hit), 101, 2);
  // A tenth of the requests took longer, evenly up to a second.
  const LatencySummary first = Summarize(report.first_token);
  EXPECT_NEAR(first.p50, 0.02, 0.0001);
  EXPECT_NEAR(first.p90, 0.02, 0.02);
  EXPECT_NEAR(first.p95, 0.52, 0.02);
  EXPECT_NEAR(first.p99, 0.92, 0.02);
  EXPECT_NEAR(first.max, 1.02, 0.001);
}

TEST(AStall, IsHardlySeenByAClosedLoopWhichWaitsForIt) {
  RunOptions options = ConstantRate(1, 10);
  options.mode = Mode::kClosed;
  options.streams = 2;
  const Report report = SimulatedReport(options, Stalling());
  // 2 of 902 requests: the percentiles flatter the server.
  EXPECT_NEAR(Summarize(report.first_token).p99, 0.02, 0.0001);
  // The stall itself is reported all the same.
  ASSERT_EQ(report.stalls.size(), 1u);
  EXPECT_EQ(report.stalls[0].hit, 2);
}

TEST(AStall, InTheTesterIsNotHiddenEither) {
  // Turns that are sent late count from when they were due.
  TurnRecord turn = {.scheduled = 0, .sent = kNanosPerSecond};
  turn.first_token = turn.last_token = turn.end = kNanosPerSecond + 20 * kMs;
  turn.tokens = 1;
  turn.status = "OK";
  LoadResult load;
  load.options.run = ConstantRate(1, 1);
  load.result.turns = {turn};
  load.result.end = 2 * kNanosPerSecond;
  const Report report = MakeReport(load, {});
  EXPECT_DOUBLE_EQ(Summarize(report.first_token).max, 1.02);
  EXPECT_DOUBLE_EQ(Summarize(report.first_token_from_send).max, 0.02);
  EXPECT_DOUBLE_EQ(Summarize(report.dispatch_lag).max, 1);
  EXPECT_TRUE(report.client_bound());
  // What meets the limits all the same does meet them.
  const Report judged = MakeReport(load, {.end_to_end = 1.1});
  EXPECT_TRUE(IsGoodRun(judged, 1));
  EXPECT_FALSE(IsGoodRun(MakeReport(load, {.end_to_end = 1}), 1));
}

// Two turns at a time, 100 ms each: 20 a second.
SimulatedServer TwentyASecond() {
  SimulatedServer server;
  server.slots = 2;
  server.first_token = [](int64_t) { return 100 * kMs; };
  return server;
}

TEST(ARateBeyondCapacity, IsReportedAsSuch) {
  const Report beyond = SimulatedReport(ConstantRate(25, 60), TwentyASecond());
  ASSERT_TRUE(beyond.backlog.has_value());
  EXPECT_TRUE(beyond.backlog->beyond_capacity);
  EXPECT_NEAR(beyond.backlog->growth, 5, 0.2);
  EXPECT_NEAR(beyond.offered_per_second, 25, 0.1);
  EXPECT_NEAR(beyond.requests_per_second, 20, 0.1);
  EXPECT_NEAR(beyond.tokens_per_second, 20, 0.1);

  const Report below = SimulatedReport(ConstantRate(15, 60), TwentyASecond());
  EXPECT_FALSE(below.backlog->beyond_capacity);
  EXPECT_NEAR(below.requests_per_second, 15, 0.1);
}

TEST(ARateBeyondCapacity, IsReportedWhenAServerRefusesInsteadOfQueueing) {
  SimulatedServer server = TwentyASecond();
  server.queue = 3;
  const Report report = SimulatedReport(ConstantRate(25, 60), server);
  EXPECT_TRUE(report.backlog->beyond_capacity);
  EXPECT_NEAR(report.backlog->refused_share, 0.2, 0.01);
  EXPECT_NEAR(report.outcomes.at("rejected") / 1500.0, 0.2, 0.01);
  EXPECT_EQ(report.statuses.at("OK") + report.statuses.at("RESOURCE_EXHAUSTED"),
            1500);
}

TEST(GoodputOfARun, CountsTurnsWithinTheLimitsOverAllTurns) {
  // Every fourth turn takes 300 ms.
  SimulatedServer server;
  server.first_token = [](int64_t turn) {
    return turn % 4 == 0 ? 300 * kMs : 50 * kMs;
  };
  const Report report = SimulatedReport(ConstantRate(20, 10), server,
                                        {.time_to_first_token = 0.2});
  ASSERT_TRUE(report.goodput.has_value());
  EXPECT_EQ(report.goodput->judged, 200);
  EXPECT_EQ(report.goodput->met, 150);
  EXPECT_EQ(report.goodput->missed_first, 50);
}

TEST(FindingTheCapacity, FindsTheRateThatTheServerCanDo) {
  RunOptions options = ConstantRate(1, 120);
  const auto run = [&](double rate) -> absl::StatusOr<Report> {
    options.rate.rate = rate;
    return SimulatedReport(options, TwentyASecond(),
                           {.time_to_first_token = 0.25});
  };
  const auto sweep = SearchCapacity({.tolerance = 0.02}, 0.99, run);
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  ASSERT_TRUE(sweep->capacity.has_value());
  EXPECT_TRUE(sweep->capacity->exact);
  EXPECT_NEAR(sweep->capacity->good, 20, 0.5);
  const Report* main = MainRun(*sweep);
  ASSERT_NE(main, nullptr);
  EXPECT_EQ(main->options.run.rate.rate, sweep->capacity->good);
  EXPECT_TRUE(IsGoodRun(*main, 0.99));
}

TEST(FindingTheCapacity, GoesByTheLimitsNotByWhatTheServerSurvives) {
  // One turn at a time, 40 ms each.
  SimulatedServer server;
  server.slots = 1;
  server.first_token = [](int64_t) { return 40 * kMs; };
  RunOptions options = ConstantRate(1, 300);
  options.arrivals = ArrivalKind::kPoisson;
  const auto run = [&](double rate) -> absl::StatusOr<Report> {
    options.rate.rate = rate;
    return SimulatedReport(options, server, {.time_to_first_token = 0.12});
  };
  const auto sweep = SearchCapacity({}, 0.9, run);
  ASSERT_TRUE(sweep.ok());
  // It serves 25 a second, but with waits that the limit forbids.
  EXPECT_LT(sweep->capacity->good, 22);
  EXPECT_GT(sweep->capacity->good, 5);
}

TEST(FindingTheCapacity, TellsWhenARunFails) {
  const auto sweep = SearchCapacity({}, 0.9, [](double) {
    return absl::StatusOr<Report>(absl::UnavailableError("gone"));
  });
  EXPECT_EQ(sweep.status().code(), absl::StatusCode::kUnavailable);
}

TEST(TheWarmUp, IsCutFromEveryFigure) {
  // The first two seconds are slow.
  SimulatedServer server;
  server.first_token = [](int64_t turn) {
    return turn < 20 ? 900 * kMs : 10 * kMs;
  };
  RunOptions options = ConstantRate(10, 10);
  options.warmup_seconds = 2;
  const Report report = SimulatedReport(options, server);
  EXPECT_EQ(report.requests, 100);
  EXPECT_EQ(report.measured, 80);
  EXPECT_EQ(report.seconds, 8);
  EXPECT_EQ(report.first_token.count(), 80);
  EXPECT_EQ(report.first_token.max(), 10 * kMs);
  EXPECT_DOUBLE_EQ(report.offered_per_second, 10);
}

}  // namespace
}  // namespace txl::bench
