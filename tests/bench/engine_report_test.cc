#include "tests/bench/engine_report.h"

#include <gtest/gtest.h>

#include "server/base/memory_guard.h"

namespace txl {
namespace {

MachinePeaks Peaks() {
  return {.threads = 2,
          .vector_target = "AVX3",
          .read_bytes_per_second = 40e9,
          .flops_per_second = 400e9,
          .by_footprint = {{1e6, 100e9}, {1e9, 40e9}}};
}

DecodeMeasurement Decode(StepCosts costs) {
  DecodeMeasurement measured;
  measured.sessions = 8;
  measured.position = 1601;
  measured.times.seconds = {0.05, 0.05, 0.05, 0.25};  // mean 0.1
  measured.times.device_seconds = {0.05, 0.04, 0.04, 0.20};
  measured.costs = costs;
  return measured;
}

TEST(EngineReportTest, DecodeLineHasThroughputAndStepTimes) {
  const nlohmann::ordered_json line = DecodeLine(Decode({}), std::nullopt);
  EXPECT_EQ(line["kind"], "decode");
  EXPECT_EQ(line["sessions"], 8);
  EXPECT_EQ(line["position"], 1601);
  EXPECT_EQ(line["steps"], 4);
  EXPECT_DOUBLE_EQ(line["tokens_per_second"], 80);
  EXPECT_DOUBLE_EQ(line["step_milliseconds"], 100);
  EXPECT_DOUBLE_EQ(line["step_milliseconds_p50"], 50);
  EXPECT_DOUBLE_EQ(line["step_milliseconds_p99"], 250);
  EXPECT_DOUBLE_EQ(line["device_idle_share"], 0.2);  // of 0.35 s
  EXPECT_FALSE(line.contains("share_of_roofline"));
}

TEST(EngineReportTest, ScoreLineCountsEveryStreamOfARound) {
  ScoreMeasurement measured;
  measured.work = {.streams = 3, .segment_rows = 100};
  measured.rounds = 2;
  measured.times.seconds = {0.2, 0.1, 0.2, 0.1};
  measured.times.device_seconds = {0, 0, 0, 0};  // not known
  StepCosts two, one;
  two.weights = {1e9, 40e9};  // 25 ms of reading, 100 ms of computing
  one.weights = {1e9, 4e9};   // 25 ms of reading
  measured.costs = {two, one};
  const nlohmann::ordered_json line = ScoreLine(measured, Peaks());
  EXPECT_EQ(line["kind"], "score");
  EXPECT_DOUBLE_EQ(line["tokens_per_second"], 1000);  // 300 in 0.3 s
  EXPECT_EQ(line["steps_of_a_round"], 2);
  EXPECT_DOUBLE_EQ(line["roofline_tokens_per_second"], 2400);  // in 0.125 s
  EXPECT_DOUBLE_EQ(line["share_of_roofline"], 0.416667);
  EXPECT_FALSE(line.contains("device_idle_share"));
  EXPECT_FALSE(ScoreLine(measured, std::nullopt).contains("share_of_roofline"));
}

TEST(EngineReportTest, DeviceLineHasWhatIsKnown) {
  MachinePeaks stated;
  stated.read_bytes_per_second = 4.8e12;
  stated.flops_per_second = 790e12;
  const nlohmann::ordered_json line = DeviceLine("NVIDIA H200", 4e12, stated);
  EXPECT_EQ(line["name"], "NVIDIA H200");
  EXPECT_DOUBLE_EQ(line["copy_gigabytes_per_second"], 4000);
  EXPECT_DOUBLE_EQ(line["stated_gigabytes_per_second"], 4800);
  EXPECT_DOUBLE_EQ(line["stated_teraflops"], 790);
  EXPECT_EQ(DeviceLine("x", 0, std::nullopt).size(), 2u);
}

TEST(EngineReportTest, SharesAreOfWhatTheMachineAllows) {
  StepCosts costs;
  costs.weights = {1e9, 20e9};   // 25 ms of reading, 50 ms of computing
  costs.attention = {1e9, 1e9};  // 25 ms of reading
  const nlohmann::ordered_json line = DecodeLine(Decode(costs), Peaks());
  EXPECT_EQ(line["bytes_per_step"], 2000000000);
  EXPECT_EQ(line["phases"]["weights"]["flops"], 20000000000);
  EXPECT_DOUBLE_EQ(line["roofline_tokens_per_second"], 106.667);  // 8 / 0.075
  EXPECT_DOUBLE_EQ(line["share_of_roofline"], 0.75);
  // 2 GB in 0.1 s of 40 GB/s.
  EXPECT_DOUBLE_EQ(line["share_of_bandwidth"], 0.5);
}

TEST(EngineReportTest, BytesAreHeldAgainstADevicesCopies) {
  StepCosts costs;
  costs.weights = {2e9, 1};
  MachinePeaks peaks = Peaks();
  EXPECT_FALSE(DecodeLine(Decode(costs), peaks).contains("share_of_copy"));
  peaks.copy_bytes_per_second = 80e9;
  EXPECT_DOUBLE_EQ(DecodeLine(Decode(costs), peaks)["share_of_copy"], 0.25);
}

TEST(EngineReportTest, SmallFootprintsAreHeldAgainstTheCachesRate) {
  StepCosts costs;
  costs.weights.bytes = 1e6;
  const nlohmann::ordered_json line = DecodeLine(Decode(costs), Peaks());
  EXPECT_DOUBLE_EQ(line["footprint_gigabytes_per_second"], 100);
  EXPECT_DOUBLE_EQ(line["share_of_roofline"], 1e6 / 100e9 / 0.1);
}

TEST(EngineReportTest, PromptLineIsHeldAgainstTheMultiplyAddPeak) {
  PromptMeasurement measured;
  measured.rows = 1000;
  measured.segment_rows = 512;
  measured.segment_seconds = {1.5, 0.5};
  measured.flops = 200e9;
  const nlohmann::ordered_json line = PromptLine(measured, Peaks());
  EXPECT_DOUBLE_EQ(line["rows_per_second"], 500);
  EXPECT_DOUBLE_EQ(line["gigaflops"], 100);
  EXPECT_DOUBLE_EQ(line["share_of_fma_peak"], 0.25);
  EXPECT_DOUBLE_EQ(line["segment_milliseconds_p50"], 500);
  EXPECT_FALSE(
      PromptLine(measured, std::nullopt).contains("share_of_fma_peak"));
}

TEST(EngineReportTest, MachineLineNamesTheMachine) {
  const nlohmann::ordered_json line = MachineLine(Peaks());
  EXPECT_EQ(line["threads"], 2);
  EXPECT_EQ(line["vector_target"], "AVX3");
  EXPECT_DOUBLE_EQ(line["read_gigabytes_per_second"], 40);
  EXPECT_DOUBLE_EQ(line["fma_gigaflops"], 400);
  EXPECT_DOUBLE_EQ(line["by_footprint"][0]["read_gigabytes_per_second"], 100);
}

TEST(ProcessFactsTest, AProcessTakesMemory) {
  EXPECT_GT(ResidentBytes(), 100 << 10);
}

}  // namespace
}  // namespace txl
