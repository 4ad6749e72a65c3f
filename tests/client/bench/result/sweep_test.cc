#include "client/bench/result/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/bench/result/report_json.h"
#include "client/bench/result/report_text.h"
#include "tests/client/bench/simulated_run.h"

namespace txl::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// One turn at a time, 100 ms each: 10 a second.
absl::StatusOr<Report> TenASecond(double rate) {
  SimulatedServer server;
  server.slots = 1;
  server.first_token = [](int64_t) { return 100 * kMs; };
  return SimulatedReport(ConstantRate(rate, 30), server,
                         {.time_to_first_token = 0.15});
}

TEST(AGoodRun, MeetsTheLimitsAndKeepsUp) {
  EXPECT_TRUE(IsGoodRun(*TenASecond(8), 0.99));
  EXPECT_FALSE(IsGoodRun(*TenASecond(15), 0.99));
  // However little is asked of it: it does not keep up.
  EXPECT_FALSE(IsGoodRun(*TenASecond(15), 0));
}

TEST(AGoodRun, NeedsLimitsAndTurns) {
  EXPECT_FALSE(IsGoodRun(SimulatedReport(ConstantRate(1, 10), {}), 0));
  RunOptions nothing = ConstantRate(1, 10);
  nothing.warmup_seconds = 9.5;
  EXPECT_FALSE(IsGoodRun(SimulatedReport(nothing, {}, {.end_to_end = 1}), 0));
}

TEST(RunningAtRates, RunsEachInOrder) {
  std::vector<double> seen;
  const auto sweep = RunRates({4, 2, 8}, [&](double rate) {
    seen.push_back(rate);
    return TenASecond(rate);
  });
  ASSERT_TRUE(sweep.ok());
  EXPECT_EQ(seen, (std::vector<double>{4, 2, 8}));
  EXPECT_EQ(sweep->runs.size(), 3u);
  EXPECT_FALSE(sweep->capacity.has_value());
  // Without a search it is about the fastest run.
  EXPECT_EQ(MainRun(*sweep), &sweep->runs[2]);
}

TEST(RunningAtRates, EndsWithTheFirstError) {
  int runs = 0;
  const auto sweep = RunRates({1, 2, 3}, [&](double) {
    ++runs;
    return absl::StatusOr<Report>(absl::UnavailableError("gone"));
  });
  EXPECT_EQ(sweep.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(runs, 1);
}

TEST(ASweep, WithoutRunsHasNoMainRun) { EXPECT_EQ(MainRun({}), nullptr); }

TEST(ASweepsJson, HoldsItsRunsAndItsCapacity) {
  const auto sweep =
      SearchCapacity({.first_rate = 4, .tolerance = 0.3}, 0.99, TenASecond);
  ASSERT_TRUE(sweep.ok());
  const nlohmann::ordered_json json = ToJson(*sweep);
  EXPECT_EQ(json["schema"], kSchema);
  EXPECT_EQ(json["kind"], "sweep");
  EXPECT_EQ(json["capacity"]["rate"], sweep->capacity->good);
  EXPECT_EQ(json["capacity"]["bad_rate"], sweep->capacity->bad);
  EXPECT_EQ(json["capacity"]["within_tolerance"], true);
  EXPECT_EQ(json["capacity"]["good_share"], 0.99);
  ASSERT_EQ(json["runs"].size(), sweep->runs.size());
  const auto main = json["main_run"].get<size_t>();
  EXPECT_EQ(json["runs"][main]["rate"], sweep->capacity->good);
  EXPECT_TRUE(json["runs"][0].contains("histograms"));
  EXPECT_FALSE(WithoutDetails(json)["runs"][0].contains("histograms"));
}

TEST(ASweepsJson, HasNullWhereNothingWasTooMuch) {
  const auto sweep =
      SearchCapacity({.first_rate = 1, .max_trials = 2}, 0.99, TenASecond);
  ASSERT_TRUE(sweep.ok());
  EXPECT_TRUE(ToJson(*sweep)["capacity"]["bad_rate"].is_null());
}

TEST(ASweepsText, HasALineForEachRunAndTheMainOneInFull) {
  const auto sweep =
      SearchCapacity({.first_rate = 4, .tolerance = 0.3}, 0.99, TenASecond);
  ASSERT_TRUE(sweep.ok());
  const std::string text = ToText(*sweep);
  EXPECT_THAT(text, HasSubstr("\n     4.000 "));
  EXPECT_THAT(text, HasSubstr("\n     8.000 "));
  EXPECT_THAT(text, HasSubstr("beyond capacity"));
  EXPECT_THAT(text, HasSubstr("capacity: "));
  EXPECT_THAT(text, HasSubstr("time to first token"));
  EXPECT_THAT(text, Not(HasSubstr("not narrowed down")));
}

}  // namespace
}  // namespace txl::bench
