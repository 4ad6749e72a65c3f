#include "tests/bench/front/device_schedule.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

// One row a millisecond.
constexpr double kRate = 1000;

absl::Duration Ms(double milliseconds) {
  return absl::Milliseconds(milliseconds);
}

TEST(DeviceScheduleTest, AStepTakesAsLongAsItsRows) {
  DeviceSchedule device(kRate);
  EXPECT_EQ(device.Add(Ms(100), 8), Ms(108));
  EXPECT_EQ(device.totals().steps, 1);
  EXPECT_EQ(device.totals().rows, 8);
  EXPECT_EQ(device.totals().busy, Ms(8));
}

TEST(DeviceScheduleTest, AStepWaitsForTheOneBefore) {
  DeviceSchedule device(kRate);
  device.Add(Ms(100), 8);
  EXPECT_EQ(device.Add(Ms(101), 2), Ms(110));
  EXPECT_EQ(device.Add(Ms(110), 5), Ms(115));  // just in time
  EXPECT_EQ(device.totals().late_steps, 0);
  EXPECT_EQ(device.totals().idle, Ms(0));
  EXPECT_EQ(device.totals().busy, Ms(15));
}

TEST(DeviceScheduleTest, ALateStepLeavesTheDeviceIdle) {
  DeviceSchedule device(kRate);
  device.Add(Ms(100), 8);
  EXPECT_EQ(device.Add(Ms(111), 4), Ms(115));
  EXPECT_EQ(device.Add(Ms(120), 1), Ms(121));
  EXPECT_EQ(device.totals().late_steps, 2);
  EXPECT_EQ(device.totals().idle, Ms(3 + 5));
  EXPECT_EQ(device.totals().busy, Ms(13));
}

TEST(DeviceScheduleTest, TheFirstStepIsNotLate) {
  DeviceSchedule device(kRate);
  device.Add(absl::Hours(5), 1);
  EXPECT_EQ(device.totals().late_steps, 0);
  EXPECT_EQ(device.totals().idle, Ms(0));
}

TEST(DeviceTotalsTest, AreTakenBetweenTwoMoments) {
  DeviceSchedule device(kRate);
  device.Add(Ms(0), 8);
  device.Add(Ms(10), 4);
  const DeviceTotals before = device.totals();
  device.Add(Ms(11), 3);
  device.Add(Ms(18), 5);
  const DeviceTotals since = device.totals() - before;
  EXPECT_EQ(since.steps, 2);
  EXPECT_EQ(since.rows, 8);
  EXPECT_EQ(since.late_steps, 1);
  EXPECT_EQ(since.idle, Ms(1));
  EXPECT_EQ(since.busy, Ms(8));
}

TEST(ShareOnTimeTest, IsOfTheSteps) {
  DeviceTotals totals;
  EXPECT_EQ(ShareOnTime(totals), 1);
  totals.steps = 8;
  totals.late_steps = 2;
  EXPECT_EQ(ShareOnTime(totals), 0.75);
}

}  // namespace
}  // namespace txl
