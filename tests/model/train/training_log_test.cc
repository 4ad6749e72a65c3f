#include "model/train/training_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "model/train/streams.h"

namespace txl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string LogFolder(const std::string& name) {
  const std::string folder = testing::TempDir() + "/training_log_test_" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

TrainProgress At(int64_t step, std::optional<double> loss,
                 std::optional<double> held_out = std::nullopt) {
  TrainProgress progress;
  progress.step = step;
  progress.total_steps = 100;
  progress.loss = loss;
  progress.held_out = held_out;
  progress.tokens_per_second = 500;
  progress.seconds_left = 7;
  return progress;
}

std::vector<nlohmann::json> Lines(const std::string& folder) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(folder + "/log.jsonl");
  for (std::string line; std::getline(in, line);) {
    lines.push_back(nlohmann::json::parse(line));
  }
  return lines;
}

std::vector<int64_t> Steps(const std::string& folder) {
  std::vector<int64_t> steps;
  for (const auto& line : Lines(folder)) steps.push_back(line.at("step"));
  return steps;
}

TEST(TrainingLogTest, AReportIsOneObjectALine) {
  const std::string folder = LogFolder("lines");
  TrainingLog log(folder, false);
  ASSERT_TRUE(log.Add(At(0, std::nullopt, 3.5)).ok());
  ASSERT_TRUE(log.Add(At(50, 2.5)).ok());
  const auto lines = Lines(folder);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].at("held_out"), 3.5);
  EXPECT_FALSE(lines[0].contains("loss"));
  EXPECT_EQ(lines[1].at("loss"), 2.5);
  EXPECT_FALSE(lines[1].contains("held_out"));
  EXPECT_EQ(lines[1].at("tokens_per_second"), 500);
  EXPECT_EQ(lines[1].at("seconds_left"), 7);
}

TEST(TrainingLogTest, ANewRunBeginsANewFile) {
  const std::string folder = LogFolder("new");
  ASSERT_TRUE(TrainingLog(folder, false).Add(At(50, 2)).ok());
  ASSERT_TRUE(TrainingLog(folder, false).Add(At(10, 2)).ok());
  EXPECT_THAT(Steps(folder), ElementsAre(10));
}

TEST(TrainingLogTest, AResumedRunReplacesTheStepsThatItRepeats) {
  const std::string folder = LogFolder("resumed");
  {
    TrainingLog log(folder, false);
    for (int64_t step : {50, 100, 150}) ASSERT_TRUE(log.Add(At(step, 2)).ok());
    // A crash cut the last line.
    std::ofstream(folder + "/log.jsonl", std::ios::app) << "{\"step\": 2";
  }
  TrainingLog log(folder, true);
  ASSERT_TRUE(log.Add(At(100, 1)).ok());
  ASSERT_TRUE(log.Add(At(150, 1)).ok());
  EXPECT_THAT(Steps(folder), ElementsAre(50, 100, 150));
  EXPECT_EQ(Lines(folder)[1].at("loss"), 1);
}

TEST(TrainingLogTest, NothingIsWrittenBeforeTheFirstReport) {
  const std::string folder = LogFolder("lazy");
  const TrainingLog log(folder, true);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(TrainingLogTest, AFileThatCannotBeWrittenIsNamed) {
  TrainingLog log("/proc/no/such", false);
  EXPECT_THAT(std::string(log.Add(At(1, 1)).message()),
              HasSubstr("/proc/no/such/log.jsonl"));
}

// The points of the curve with `colour`.
std::vector<std::pair<double, double>> PointsOf(const std::string& svg,
                                                const std::string& colour) {
  const size_t curve = svg.find("stroke=\"" + colour + "\" stroke-width");
  const size_t begin = svg.find("points=\"", curve) + 8;
  std::istringstream in(svg.substr(begin, svg.find('"', begin) - begin));
  std::vector<std::pair<double, double>> points;
  double x = 0, y = 0;
  char comma = 0;
  while (in >> x >> comma >> y) points.emplace_back(x, y);
  return points;
}

TEST(LossChartTest, ShowsBothLossesOverTheSteps) {
  const std::vector<LossPoint> points = {
      {0, {}, 4.0}, {50, 3.0, {}}, {100, 2.0, 3.0}};
  const std::string svg = LossChart(points);
  const auto training = PointsOf(svg, "#1f6fb4");
  const auto held_out = PointsOf(svg, "#c8431b");
  ASSERT_EQ(training.size(), 2u);
  ASSERT_EQ(held_out.size(), 2u);
  // Step 50 is half way between steps 0 and 100, 3 nats between 4 and 2.
  EXPECT_NEAR(training[0].first, (held_out[0].first + held_out[1].first) / 2,
              0.11);
  EXPECT_NEAR(training[0].second, held_out[1].second, 0.11);
  EXPECT_NEAR(training[0].second, (held_out[0].second + training[1].second) / 2,
              0.11);
  // Less is lower in the picture, where y grows downwards.
  EXPECT_GT(training[1].second, training[0].second);
  EXPECT_THAT(svg, HasSubstr(">held-out<"));
  EXPECT_THAT(svg, HasSubstr(">nats per token<"));
}

TEST(LossChartTest, OnePointAndNoneArePicturesToo) {
  for (const auto& points :
       {std::vector<LossPoint>{}, std::vector<LossPoint>{{0, {}, 2.0}}}) {
    const std::string svg = LossChart(points);
    EXPECT_THAT(svg, HasSubstr("</svg>"));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

}  // namespace
}  // namespace txl
