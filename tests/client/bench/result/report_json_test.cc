#include "client/bench/result/report_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/client/bench/mixed_load.h"

namespace txl::bench {
namespace {

using Json = nlohmann::ordered_json;

TEST(TheJson, HoldsTheSameFigures) {
  LoadResult load = MixedLoad();
  load.result.turns[1].problem = "Started twice";
  load.options.run.workload.seed = 9;
  const Json full = ToJson(MakeReport(load, {.time_to_first_token = 0.4}));
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
  const Json json = ToJson(MakeReport(MixedLoad(), {}));
  int64_t count = 0;
  for (const auto& bucket : json["histograms"]["inter_token"]) {
    EXPECT_GE(bucket[0].get<double>(), 0.1);
    EXPECT_LE(bucket[0].get<double>(), 0.5 * (1 + 1 / 256.0));
    count += bucket[1].get<int64_t>();
  }
  EXPECT_EQ(count, 5);
}

TEST(TheJson, SurvivesNamesThatAreNoUtf8) {
  LoadResult load = MixedLoad();
  load.model = "\xff";
  EXPECT_TRUE(nlohmann::json::accept(ToLine(ToJson(MakeReport(load, {})))));
}

// An open loop with a stall and limits that its turns miss in every way.
Report OpenRun() {
  LoadResult load = MixedLoad();
  load.options.run.mode = Mode::kOpen;
  load.options.run.rate.rate = 2;
  load.options.run.arrivals = ArrivalKind::kConstant;
  Report report = MakeReport(load, {.time_to_first_token = 0.15,
                                    .inter_token = 0.35,
                                    .per_token = 0.2,
                                    .end_to_end = 0.9});
  report.stalls = {
      {.start = kNanosPerSecond / 2, .length = kNanosPerSecond / 4, .hit = 3}};
  return report;
}

TEST(TheJson, OfAnOpenLoopHasItsRateAndItsBacklog) {
  const Json json = ToJson(OpenRun());
  EXPECT_EQ(json["mode"], "open loop");
  EXPECT_EQ(json["rate"], 2.0);
  EXPECT_EQ(json["arrivals"], "constant");
  EXPECT_FALSE(json.contains("streams"));
  EXPECT_EQ(json["backlog"]["beyond_capacity"], true);
  EXPECT_EQ(json["backlog"]["refused_share"], 0.25);
  EXPECT_FALSE(ToJson(MakeReport(MixedLoad(), {})).contains("backlog"));
}

TEST(TheJson, NamesEveryLimitAndHowManyMissedIt) {
  const Json goodput = ToJson(OpenRun())["goodput"];
  const Json limits = {
      {"ttft", 0.15}, {"itl", 0.35}, {"tpot", 0.2}, {"e2e", 0.9}};
  EXPECT_EQ(goodput["limits_seconds"], limits);
  EXPECT_EQ(goodput["requests"], 4);
  EXPECT_EQ(goodput["did_not_end_well"], 2);
  // Of the two good turns the first is late with its first token.
  EXPECT_EQ(goodput["missed"]["ttft"], 1);
  EXPECT_EQ(goodput["missed"]["e2e"], 0);
}

TEST(TheJson, TellsWhichShareAStallHit) {
  const Json stalls = ToJson(OpenRun())["stalls"];
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_EQ(stalls[0]["start"], 0.5);
  EXPECT_EQ(stalls[0]["seconds"], 0.25);
  EXPECT_EQ(stalls[0]["requests_hit"], 3);
  EXPECT_EQ(stalls[0]["share_hit"], 0.75);
}

TEST(TheJson, HasDistributionsAsTheyWereGiven) {
  LoadResult load = MixedLoad();
  const auto lengths = Distribution::Parse("uniform:8:24");
  ASSERT_TRUE(lengths.ok()) << lengths.status();
  load.options.run.workload.prompt_tokens = *lengths;
  const Json json = ToJson(MakeReport(load, {}));
  EXPECT_EQ(json["prompt_tokens"], "uniform:8:24");
  EXPECT_EQ(json["turns"], 1);
}

TEST(TheJson, OfASweepHasEveryRunAndNoInfinity) {
  Sweep sweep;
  sweep.runs = {OpenRun(), OpenRun()};
  sweep.capacity = Capacity{.good = 2};
  sweep.good_share = 0.99;
  const Json json = ToJson(sweep);
  EXPECT_EQ(json["kind"], "sweep");
  EXPECT_EQ(json["runs"].size(), 2u);
  EXPECT_EQ(json["capacity"]["rate"], 2.0);
  EXPECT_TRUE(json["capacity"]["bad_rate"].is_null());
  EXPECT_EQ(json["capacity"]["within_tolerance"], false);
  EXPECT_LT(json["main_run"].get<size_t>(), 2u);
  const Json bare = WithoutDetails(json);
  for (const Json& run : bare["runs"]) {
    EXPECT_FALSE(run.contains("histograms"));
    EXPECT_FALSE(run.contains("series"));
    EXPECT_TRUE(run.contains("goodput"));
  }
  EXPECT_FALSE(ToJson(Sweep()).contains("main_run"));
  EXPECT_FALSE(ToJson(Sweep()).contains("capacity"));
}

}  // namespace
}  // namespace txl::bench
