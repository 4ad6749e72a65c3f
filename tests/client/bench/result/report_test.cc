#include "client/bench/result/report.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/client/bench/mixed_load.h"
#include "tests/client/bench/turns.h"

namespace txl::bench {
namespace {

constexpr Nanos kReportMs = kNanosPerSecond / 1000;

TEST(AReport, CountsTokensOfAllAndRequestsOfTheFinished) {
  const Report report = MakeReport(MixedLoad(), {});
  EXPECT_EQ(report.requests, 4);
  EXPECT_EQ(report.measured, 4);
  EXPECT_EQ(report.tokens, 8);
  EXPECT_DOUBLE_EQ(report.seconds, 2);
  EXPECT_DOUBLE_EQ(report.tokens_per_second, 4);
  EXPECT_DOUBLE_EQ(report.requests_per_second, 1);
  const std::map<std::string, int64_t> statuses = {
      {"OK", 2},
      {"INTERNAL (STEP_FAILED)", 1},
      {"RESOURCE_EXHAUSTED (QUEUE_FULL)", 1}};
  EXPECT_EQ(report.statuses, statuses);
  const std::map<std::string, int64_t> outcomes = {
      {"ok", 2}, {"failed", 1}, {"rejected", 1}};
  EXPECT_EQ(report.outcomes, outcomes);
}

TEST(AReport, TakesEachLatencyFromTheTurnsThatHaveIt) {
  const Report report = MakeReport(MixedLoad(), {});
  EXPECT_EQ(report.first_token.count(), 3);
  EXPECT_EQ(report.first_token.max(), 500 * kReportMs);
  EXPECT_EQ(report.first_token.min(), 100 * kReportMs);
  EXPECT_EQ(report.inter_token.count(), 5);
  EXPECT_EQ(report.inter_token.max(), 500 * kReportMs);
  EXPECT_EQ(report.per_token.count(), 3);
  EXPECT_EQ(report.end_to_end.count(), 2);
  EXPECT_EQ(report.dispatch_lag.count(), 4);
}

TEST(AReport, LeavesClientsThatReadSlowlyOutOfTheLatencies) {
  LoadResult load = MixedLoad();
  load.result.turns[0].slow_reader = true;
  const Report report = MakeReport(load, {});
  EXPECT_EQ(report.first_token.count(), 2);
  EXPECT_EQ(report.end_to_end.count(), 1);
  EXPECT_EQ(report.tokens, 8);
}

TEST(AReport, MeasuresARunWithSecondsUntilNoTurnStarts) {
  LoadResult load = MixedLoad();
  load.options.run.requests = 0;
  load.options.run.seconds = 1;
  const Report report = MakeReport(load, {});
  EXPECT_DOUBLE_EQ(report.seconds, 1);
  EXPECT_DOUBLE_EQ(report.tokens_per_second, 5);
  EXPECT_DOUBLE_EQ(report.requests_per_second, 1);
  EXPECT_EQ(report.tokens, 8);
}

TEST(AReport, OfARunThatWasInterruptedEndsThere) {
  LoadResult load = MixedLoad();
  load.options.run.requests = 0;
  load.options.run.seconds = 60;
  EXPECT_DOUBLE_EQ(MakeReport(load, {}).seconds, 60);
  load.result.interrupted = true;
  EXPECT_DOUBLE_EQ(MakeReport(load, {}).seconds, 2);
}

TEST(AReport, HasASeriesThatAddsUp) {
  const Report report = MakeReport(MixedLoad(), {});
  int64_t tokens = 0;
  int64_t due = 0;
  int64_t ended = 0;
  int64_t failed = 0;
  double seconds = 0;
  for (const Interval& part : report.series) {
    EXPECT_NEAR(part.start, seconds, 1e-9);
    tokens += part.tokens;
    due += part.due;
    ended += part.ended;
    failed += part.failed;
    seconds += part.seconds;
    EXPECT_GE(part.running, 0);
  }
  EXPECT_LE(report.series.size(), 120u);
  EXPECT_EQ(tokens, 8);
  EXPECT_EQ(due, 4);
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(failed, 2);
  EXPECT_NEAR(seconds, 2, 1e-9);
  EXPECT_EQ(report.series.back().running, 0);
}

// A rate over a few milliseconds is chance, and would be drawn as a spike.
TEST(AReport, HasNoShortIntervalAtTheEndOfItsSeries) {
  for (const Nanos end : {2003 * kReportMs, 2004 * kReportMs, 1999 * kReportMs,
                          2010 * kReportMs}) {
    LoadResult load = MixedLoad();
    load.result.end = end;
    load.result.tokens.Add(end, 3);
    const std::vector<Interval> series = MakeReport(load, {}).series;
    ASSERT_GT(series.size(), 1u);
    EXPECT_GE(series.back().seconds, series.front().seconds / 2);
    EXPECT_LE(series.back().seconds, series.front().seconds * 1.5);
    EXPECT_NEAR(series.back().start + series.back().seconds, ToSeconds(end),
                1e-9);
    EXPECT_EQ(std::accumulate(series.begin(), series.end(), int64_t{0},
                              [](int64_t sum, const Interval& part) {
                                return sum + part.tokens;
                              }),
              8 + 3);
  }
}

TEST(AReport, JudgesBacklogsOfOpenLoopsAndGoodputWithLimitsOnly) {
  EXPECT_FALSE(MakeReport(MixedLoad(), {}).backlog.has_value());
  EXPECT_FALSE(MakeReport(MixedLoad(), {}).goodput.has_value());
  LoadResult open = MixedLoad();
  open.options.run.mode = Mode::kOpen;
  const Report report = MakeReport(open, {.end_to_end = 10});
  EXPECT_TRUE(report.backlog.has_value());
  EXPECT_EQ(report.goodput->met, 2);
}

TEST(AReport, OfNoTurnsIsAllZero) {
  const Report report = MakeReport(LoadResult(), {});
  EXPECT_EQ(report.tokens_per_second, 0);
  EXPECT_EQ(report.end_to_end.count(), 0);
  EXPECT_FALSE(report.client_bound());
}

TEST(AReport, CallsTheTesterLateOnlyWhenThatMatters) {
  LoadResult load = MixedLoad();
  load.result.turns.resize(1);
  const auto late_by = [&](Nanos lag) {
    load.result.turns[0].sent = lag;
    return MakeReport(load, {}).client_bound();
  };
  EXPECT_FALSE(late_by(4 * kReportMs));
  EXPECT_FALSE(late_by(20 * kReportMs));  // 4 % of the time to the first token
  EXPECT_TRUE(late_by(30 * kReportMs));
}

}  // namespace
}  // namespace txl::bench
