#include "client/fleet/step_costs.h"

#include <gtest/gtest.h>

namespace txl::fleet {
namespace {

StepCosts Costs(const std::vector<std::string>& points) {
  absl::StatusOr<StepCosts> costs = StepCosts::Parse(points);
  EXPECT_TRUE(costs.ok()) << costs.status();
  return *costs;
}

TEST(StepCosts, AreStraightBetweenTheirPoints) {
  const StepCosts costs = Costs({"1:0.010", "3:0.020", "11:0.060"});
  EXPECT_DOUBLE_EQ(costs.Seconds(1), 0.010);
  EXPECT_DOUBLE_EQ(costs.Seconds(2), 0.015);
  EXPECT_DOUBLE_EQ(costs.Seconds(3), 0.020);
  EXPECT_DOUBLE_EQ(costs.Seconds(7), 0.040);
  EXPECT_DOUBLE_EQ(costs.Seconds(11), 0.060);
}

TEST(StepCosts, AreTheFirstPointsBeforeIt) {
  EXPECT_DOUBLE_EQ(Costs({"8:0.5", "9:0.6"}).Seconds(1), 0.5);
}

TEST(StepCosts, GrowWithTheStreamsBehindTheLastPoint) {
  EXPECT_DOUBLE_EQ(Costs({"1:0.5", "4:1"}).Seconds(12), 3);
}

TEST(StepCosts, AreRefusedWhereTheyAreNotPoints) {
  EXPECT_FALSE(StepCosts::Parse({}).ok());
  EXPECT_FALSE(StepCosts::Parse({"1"}).ok());
  EXPECT_FALSE(StepCosts::Parse({"1:x"}).ok());
  EXPECT_FALSE(StepCosts::Parse({"0:1"}).ok());
  EXPECT_FALSE(StepCosts::Parse({"1:0"}).ok());
  EXPECT_FALSE(StepCosts::Parse({"1:nan"}).ok());
  EXPECT_FALSE(StepCosts::Parse({"2:1", "2:2"}).ok());
  EXPECT_FALSE(StepCosts::Parse({"1:2", "2:1"}).ok());
}

}  // namespace
}  // namespace txl::fleet
