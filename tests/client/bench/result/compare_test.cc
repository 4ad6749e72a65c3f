#include "client/bench/result/compare.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "client/bench/result/report_json.h"
#include "tests/client/bench/simulated_run.h"

namespace txl::bench {
namespace {

using Json = nlohmann::ordered_json;

// A run whose times vary by chance around `mean` milliseconds.
Report Measure(uint64_t seed, double mean, double rate = 20) {
  SimulatedServer server;
  server.first_token = [=](int64_t turn) {
    std::mt19937_64 random(seed * 1'000'003 + static_cast<uint64_t>(turn));
    std::uniform_real_distribution<double> draw(0.5, 1.5);
    return static_cast<Nanos>(mean * draw(random) * kMs);
  };
  server.gap = [](int64_t, int64_t) { return 5 * kMs; };
  RunOptions options = ConstantRate(rate, 30);
  options.workload.max_tokens = Distribution::Fixed(4);
  return SimulatedReport(options, server, {.time_to_first_token = 0.1});
}

const ComparedFigure& Find(const Comparison& comparison,
                           const std::string& name) {
  for (const ComparedFigure& figure : comparison.figures) {
    if (figure.name == name) return figure;
  }
  ADD_FAILURE() << "no figure " << name;
  return comparison.figures.front();
}

TEST(ComparingRuns, FindsADifferenceThatIsThere) {
  const auto comparison =
      Compare(ToJson(Measure(1, 80)), ToJson(Measure(2, 96)));
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_TRUE(comparison->unlike.empty());
  const ComparedFigure& mean = Find(*comparison, "time to first token mean");
  EXPECT_NEAR(mean.a, 80, 3);
  EXPECT_NEAR(mean.b, 96, 3);
  EXPECT_DOUBLE_EQ(mean.ratio, mean.b / mean.a);
  EXPECT_TRUE(mean.differs());
  EXPECT_LT(mean.interval.low, 1.2);
  EXPECT_GT(mean.interval.high, 1.2);
  EXPECT_TRUE(Find(*comparison, "time to first token p50").differs());
  EXPECT_TRUE(Find(*comparison, "time to first token p90").differs());
  EXPECT_TRUE(Find(*comparison, "share within limits").differs());
  EXPECT_FALSE(Find(*comparison, "throughput").differs());
  EXPECT_FALSE(Find(*comparison, "mean gap of a turn p50").differs());
}

TEST(ComparingRuns, CallsChanceADifferenceAboutOnceInTwenty) {
  int different = 0;
  constexpr int kPairs = 100;
  for (uint64_t pair = 0; pair < kPairs; ++pair) {
    const auto comparison = Compare(ToJson(Measure(1000 + pair, 80)),
                                    ToJson(Measure(2000 + pair, 80)));
    ASSERT_TRUE(comparison.ok());
    different += Find(*comparison, "time to first token p50").differs();
  }
  // 5 expected; 14 has a chance below 1 in 1000.
  EXPECT_LE(different, 14);
}

TEST(ComparingRuns, NamesWhatWasNotAskedAlike) {
  const auto comparison =
      Compare(ToJson(Measure(1, 80, 10)), ToJson(Measure(1, 80, 20)));
  ASSERT_TRUE(comparison.ok());
  ASSERT_EQ(comparison->unlike.size(), 1u);
  EXPECT_EQ(comparison->unlike[0], "rate: 10.0, 20.0");
  EXPECT_TRUE(Find(*comparison, "throughput").differs());
  EXPECT_NE(ToText(*comparison).find("NOT ALIKE: rate: 10.0, 20.0"),
            std::string::npos);
}

TEST(ComparingRuns, TakesTheMainRunOfSeveral) {
  Sweep sweep;
  sweep.runs = {Measure(1, 80, 10), Measure(1, 80, 20)};
  sweep.capacity = Capacity{.good = 10, .bad = 20, .exact = false};
  const auto comparison = Compare(ToJson(sweep), ToJson(Measure(1, 80, 10)));
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_TRUE(comparison->unlike.empty());
  EXPECT_DOUBLE_EQ(Find(*comparison, "time to first token p99").ratio, 1);
}

TEST(ComparingRuns, RefusesWhatIsNoResult) {
  const Json run = ToJson(Measure(1, 80));
  Json other_schema = run;
  other_schema["schema"] = 1;
  Json no_field = run;
  no_field.erase("seconds");
  Json no_text = run;
  no_text["kind"] = 5;
  Json no_buckets = run;
  no_buckets["histograms"].erase("end_to_end");
  for (const Json& bad : {Json(), Json::array(), Json::object(), other_schema,
                          no_field, no_text, no_buckets, WithoutDetails(run)}) {
    const absl::Status status = Compare(run, bad, "a.json", "b.json").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message().substr(0, 8), "b.json: ") << status;
  }
  EXPECT_NE(std::string(Compare(Json(), run).status().message()).find("A: "),
            std::string::npos);
  EXPECT_NE(std::string(Compare(run, Json()).status().message()).find("B: "),
            std::string::npos);
}

TEST(AComparison, AsTextMarksWhatDiffers) {
  const auto comparison =
      Compare(ToJson(Measure(1, 80)), ToJson(Measure(2, 160)));
  ASSERT_TRUE(comparison.ok());
  const std::string text = ToText(*comparison);
  EXPECT_NE(text.find("time to first token p99"), std::string::npos);
  EXPECT_NE(text.find("differs"), std::string::npos);
  const Json json = ToJson(*comparison);
  EXPECT_EQ(json["figures"].size(), comparison->figures.size());
  EXPECT_EQ(json["figures"][0]["name"], "throughput");
}

}  // namespace
}  // namespace txl::bench
