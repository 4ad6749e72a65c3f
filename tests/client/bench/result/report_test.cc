#include "client/bench/result/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/bench/result/report_json.h"
#include "client/bench/result/report_text.h"
#include "tests/client/bench/turns.h"

namespace txl::bench {
namespace {

constexpr Nanos kMs = kNanosPerSecond / 1000;

// Two seconds of a closed loop: two good turns, one that failed after two
// tokens, one that was refused.
LoadResult Mixed() {
  LoadResult load;
  load.options.run.requests = 4;
  load.model = "m";
  load.usage = {.cpu_seconds = 0.002,
                .context_switches = 7,
                .threads = 1,
                .connections = 3};
  TurnRecord first = OkTurn(0, 800 * kMs);
  first.first_token = 500 * kMs;
  first.tokens = 3;
  TurnRecord second = OkTurn(1000 * kMs, 800 * kMs);
  second.first_token = 1100 * kMs;
  second.tokens = 3;
  TurnRecord failed = OkTurn(100 * kMs, 700 * kMs);
  failed.first_token = 300 * kMs;
  failed.tokens = 2;
  failed.outcome = Outcome::kFailed;
  failed.status = "INTERNAL (STEP_FAILED)";
  load.result.turns = {first, failed, Refused(200 * kMs), second};
  for (const Nanos at : {500, 600, 800, 300, 800, 1100, 1400, 1800}) {
    load.result.tokens.Add(at * kMs, 1);
  }
  for (const Nanos gap : {100, 200, 500, 300, 400}) {
    load.result.gaps.Add(gap * kMs);
  }
  load.result.end = 2000 * kMs;
  return load;
}

TEST(AReport, CountsTokensOfAllAndRequestsOfTheFinished) {
  const Report report = MakeReport(Mixed(), {});
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
  const Report report = MakeReport(Mixed(), {});
  EXPECT_EQ(report.first_token.count(), 3);
  EXPECT_EQ(report.first_token.max(), 500 * kMs);
  EXPECT_EQ(report.first_token.min(), 100 * kMs);
  EXPECT_EQ(report.inter_token.count(), 5);
  EXPECT_EQ(report.inter_token.max(), 500 * kMs);
  EXPECT_EQ(report.per_token.count(), 3);
  EXPECT_EQ(report.end_to_end.count(), 2);
  EXPECT_EQ(report.dispatch_lag.count(), 4);
}

TEST(AReport, LeavesClientsThatReadSlowlyOutOfTheLatencies) {
  LoadResult load = Mixed();
  load.result.turns[0].slow_reader = true;
  const Report report = MakeReport(load, {});
  EXPECT_EQ(report.first_token.count(), 2);
  EXPECT_EQ(report.end_to_end.count(), 1);
  EXPECT_EQ(report.tokens, 8);
}

TEST(AReport, MeasuresARunWithSecondsUntilNoTurnStarts) {
  LoadResult load = Mixed();
  load.options.run.requests = 0;
  load.options.run.seconds = 1;
  const Report report = MakeReport(load, {});
  EXPECT_DOUBLE_EQ(report.seconds, 1);
  EXPECT_DOUBLE_EQ(report.tokens_per_second, 5);
  EXPECT_DOUBLE_EQ(report.requests_per_second, 1);
  EXPECT_EQ(report.tokens, 8);
}

TEST(AReport, OfARunThatWasInterruptedEndsThere) {
  LoadResult load = Mixed();
  load.options.run.requests = 0;
  load.options.run.seconds = 60;
  EXPECT_DOUBLE_EQ(MakeReport(load, {}).seconds, 60);
  load.result.interrupted = true;
  EXPECT_DOUBLE_EQ(MakeReport(load, {}).seconds, 2);
}

TEST(AReport, HasASeriesThatAddsUp) {
  const Report report = MakeReport(Mixed(), {});
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

TEST(AReport, JudgesBacklogsOfOpenLoopsAndGoodputWithLimitsOnly) {
  EXPECT_FALSE(MakeReport(Mixed(), {}).backlog.has_value());
  EXPECT_FALSE(MakeReport(Mixed(), {}).goodput.has_value());
  LoadResult open = Mixed();
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
  LoadResult load = Mixed();
  load.result.turns.resize(1);
  const auto late_by = [&](Nanos lag) {
    load.result.turns[0].sent = lag;
    return MakeReport(load, {}).client_bound();
  };
  EXPECT_FALSE(late_by(4 * kMs));
  EXPECT_FALSE(late_by(20 * kMs));  // 4 % of the time to the first token
  EXPECT_TRUE(late_by(30 * kMs));
}

TEST(TheJson, HoldsTheSameFigures) {
  LoadResult load = Mixed();
  load.result.turns[1].problem = "Started twice";
  load.options.run.workload.seed = 9;
  const nlohmann::ordered_json full =
      ToJson(MakeReport(load, {.time_to_first_token = 0.4}));
  const std::string line = ToLine(WithoutDetails(full));
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const nlohmann::json json = nlohmann::json::parse(line);
  EXPECT_EQ(json["schema"], 2);
  EXPECT_EQ(json["kind"], "run");
  EXPECT_EQ(json["mode"], "closed loop");
  EXPECT_EQ(json["tokens"], 8);
  EXPECT_EQ(json["tokens_per_second"], 4.0);
  EXPECT_EQ(json["connections"], 3);
  EXPECT_EQ(json["statuses"]["OK"], 2);
  EXPECT_EQ(json["malformed_streams"]["Started twice"], 1);
  EXPECT_EQ(json["seed"], 9);
  EXPECT_EQ(json["prompt_tokens"], 32);
  EXPECT_EQ(json["inter_token_seconds"]["count"], 5);
  EXPECT_EQ(json["time_to_first_token_seconds"]["max"], 0.5);
  EXPECT_EQ(json["goodput"]["met"], 1);
  EXPECT_EQ(json["goodput"]["limits_seconds"]["ttft"], 0.4);
  EXPECT_EQ(json["goodput"]["missed"]["ttft"], 1);
  EXPECT_EQ(json["tester"]["cpu_microseconds_per_token"], 250.0);
  EXPECT_EQ(json["tester"]["context_switches"], 7);
  EXPECT_FALSE(json.contains("histograms"));
  EXPECT_FALSE(json.contains("series"));
}

TEST(TheJson, HasHistogramsThatHoldEveryValue) {
  const nlohmann::ordered_json json = ToJson(MakeReport(Mixed(), {}));
  int64_t count = 0;
  for (const auto& bucket : json["histograms"]["inter_token"]) {
    EXPECT_GE(bucket[0].get<double>(), 0.1);
    EXPECT_LE(bucket[0].get<double>(), 0.5 * (1 + 1 / 256.0));
    count += bucket[1].get<int64_t>();
  }
  EXPECT_EQ(count, 5);
}

TEST(TheJson, SurvivesNamesThatAreNoUtf8) {
  LoadResult load = Mixed();
  load.model = "\xff";
  EXPECT_TRUE(nlohmann::json::accept(ToLine(ToJson(MakeReport(load, {})))));
}

TEST(TheText, ShowsMillisecondsAndWhatWentWrong) {
  LoadResult load = Mixed();
  load.result.turns[0].problem = "Started twice";
  load.server = {.verdict = ServerCheck::Verdict::kUnequal,
                 .server_turns = 2,
                 .own_turns = 2,
                 .server_tokens = 9,
                 .own_tokens = 8};
  const std::string text = ToText(MakeReport(load, {.end_to_end = 1}));
  for (const char* part :
       {"closed loop: 8 streams on 3 connections", "4.0 tokens/s", "500.00",
        "MALFORMED STREAM: Started twice", "QUEUE_FULL", "STEP_FAILED",
        "goodput: 1.00 requests/s, 50.00 % of 4",
        "COUNTERS DIFFER: 9 tokens delivered, 8 received",
        "250.0 us per token"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(TheText, OfAnOpenLoopShowsWhatIsBeyondCapacity) {
  LoadResult load = Mixed();
  load.options.run.mode = Mode::kOpen;
  load.options.run.rate.rate = 2;
  const std::string text = ToText(MakeReport(load, {}));
  EXPECT_NE(text.find("open loop: 2 requests/s, Poisson"), std::string::npos);
  EXPECT_NE(text.find("BEYOND CAPACITY: 25.0 %"), std::string::npos) << text;
  EXPECT_NE(text.find("from send"), std::string::npos);
}

TEST(ProgressLines, TellRatesSinceTheLastOne) {
  EXPECT_EQ(
      ProgressLine(
          {.seconds = 1, .sent = 10, .ended = 4, .tokens = 100},
          {.seconds = 3, .sent = 30, .ended = 14, .failed = 2, .tokens = 500}),
      "   3 s: 200.0 tokens/s, 10.0 requests/s sent, 5.0 ended, 16 "
      "running, 2 failed\n");
}

}  // namespace
}  // namespace txl::bench
