#include "client/bench/result/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "client/bench/result/report_json.h"
#include "tests/client/bench/simulated_run.h"

namespace txl::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

// 10 seconds at 20 a second with a stall of one second, as JSON.
Json StalledRun(double rate = 20) {
  SimulatedServer server;
  server.first_token = [](int64_t) { return 20 * kMs; };
  server.gap = [](int64_t, int64_t) { return 4 * kMs; };
  server.stalls = {{5000 * kMs, 1000 * kMs}};
  RunOptions options = ConstantRate(rate, 10);
  options.workload.max_tokens = Distribution::Fixed(5);
  return ToJson(SimulatedReport(options, server, {.end_to_end = 0.5}));
}

const Line& Find(const Chart& chart, const std::string& name) {
  for (const Line& line : chart.lines) {
    if (line.name == name) return line;
  }
  ADD_FAILURE() << "no line " << name;
  return chart.lines.front();
}

TEST(APage, NeedsNothingFromElsewhere) {
  const auto page = MakePage(StalledRun());
  ASSERT_TRUE(page.ok()) << page.status();
  for (const char* reference :
       {"src=", "href=", "url(", "@import", "<script", "<link"}) {
    EXPECT_THAT(*page, Not(HasSubstr(reference)));
  }
  EXPECT_THAT(*page, HasSubstr("<!doctype html>"));
  EXPECT_THAT(*page, HasSubstr("Latency distribution"));
  EXPECT_THAT(*page, HasSubstr("Throughput"));
}

TEST(APage, WarnsOfStalls) {
  const auto page = MakePage(StalledRun());
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(*page, HasSubstr("Stall: no token for 1."));
  EXPECT_THAT(*page, HasSubstr("limit of e2e"));
}

TEST(APage, OfSeveralRunsHasRateAgainstLatency) {
  Json sweep = {{"schema", kSchema}, {"kind", "sweep"}};
  sweep["capacity"] = {{"rate", 20.0},
                       {"bad_rate", nullptr},
                       {"within_tolerance", false},
                       {"good_share", 0.99}};
  sweep["main_run"] = 1u;
  sweep["runs"] = {StalledRun(10), StalledRun(20)};
  const auto page = MakePage(sweep);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page, HasSubstr("Capacity: 20 requests/s"));
  EXPECT_THAT(*page, HasSubstr("Rate against latency"));
  EXPECT_THAT(*page, HasSubstr("At 20 requests/s"));
  const Chart chart = RateChart(sweep);
  const Line& p50 = Find(chart, "first token p50");
  ASSERT_EQ(p50.points.size(), 2u);
  EXPECT_EQ(p50.points[0].first, 10);
  EXPECT_NEAR(p50.points[1].second, 20, 0.1);
  ASSERT_EQ(chart.guides.size(), 2u);
  EXPECT_EQ(chart.guides[0].kind, Guide::Kind::kHorizontal);
  EXPECT_EQ(chart.guides[0].name, "limit of e2e");
  EXPECT_DOUBLE_EQ(chart.guides[0].at, 500);
  EXPECT_EQ(chart.guides[1].at, 20);
}

TEST(APage, EscapesWhatAServerMaySend) {
  Json run = StalledRun();
  run["model"] = "<script>alert(1)</script>";
  run["statuses"]["<b>"] = 1;
  const auto page = MakePage(run);
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(*page, Not(HasSubstr("<script>")));
  EXPECT_THAT(*page, Not(HasSubstr("<b>")));
}

TEST(APage, RefusesWhatIsNoResult) {
  Json broken = StalledRun();
  broken["tester"] = 5;
  for (const Json& bad : {Json(), Json::object(), broken}) {
    EXPECT_EQ(MakePage(bad).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(TheLatencyChart, DrawsEachShareAtItsNines) {
  const Chart chart = LatencyChart(StalledRun());
  const Line& line = Find(chart, "time to first token");
  // The stall hits the slowest tenth of 200 turns.
  ASSERT_GT(line.points.size(), 10u);
  EXPECT_EQ(line.points.front().first, 0);
  EXPECT_NEAR(line.points.front().second, 20, 0.1);
  EXPECT_NEAR(line.points.back().second, 1020, 60);
  // The last of 200 values lies in the middle of the last share.
  EXPECT_NEAR(line.points.back().first, -std::log10(0.5 / 200), 1e-9);
  for (size_t i = 1; i < line.points.size(); ++i) {
    EXPECT_GE(line.points[i].first, line.points[i - 1].first);
    EXPECT_GE(line.points[i].second, line.points[i - 1].second);
  }
}

TEST(TheThroughputChart, DrawsTokensOverTimeAndMarksStalls) {
  const Chart chart = ThroughputChart(StalledRun());
  const Line& line = chart.lines.at(0);
  double highest = 0;
  double in_stall = 0;
  for (const auto& [x, y] : line.points) {
    highest = std::max(highest, y);
    if (x > 5.2 && x < 5.9) in_stall += y;
  }
  EXPECT_GE(highest, 100);
  EXPECT_EQ(in_stall, 0);
  ASSERT_EQ(chart.guides.size(), 1u);
  EXPECT_EQ(chart.guides[0].kind, Guide::Kind::kBand);
  EXPECT_NEAR(chart.guides[0].at, 5, 0.1);
  EXPECT_NEAR(chart.guides[0].to, 6, 0.1);
}

TEST(TheTurnsChart, DrawsWhatWasDueAndWhatEnded) {
  const Chart chart = TurnsChart(StalledRun());
  double due = 0;
  const Line& line = Find(chart, "due/s");
  for (const auto& [x, y] : line.points) due += y;
  // Intervals are equally long but for the last.
  EXPECT_NEAR(due / static_cast<double>(line.points.size()), 20, 1);
  double most = 0;
  for (const auto& [x, y] : Find(chart, "waiting or running").points) {
    most = std::max(most, y);
  }
  EXPECT_NEAR(most, 20, 2);
}

}  // namespace
}  // namespace txl::bench
