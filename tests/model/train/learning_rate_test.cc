#include "model/train/learning_rate.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

constexpr LearningRateSchedule kSchedule{
    .peak = 0.8, .final_share = 0.1, .warmup_steps = 4, .total_steps = 104};

TEST(LearningRateTest, RisesLinearlyToThePeak) {
  EXPECT_DOUBLE_EQ(LearningRateAt(kSchedule, 0), 0.2);
  EXPECT_DOUBLE_EQ(LearningRateAt(kSchedule, 1), 0.4);
  EXPECT_DOUBLE_EQ(LearningRateAt(kSchedule, 3), 0.8);
}

TEST(LearningRateTest, FallsAlongHalfACosineToTheFinalShare) {
  EXPECT_DOUBLE_EQ(LearningRateAt(kSchedule, 4), 0.8);
  // Half way the cosine is at its middle: 0.1 + 0.9 / 2 of the peak.
  EXPECT_NEAR(LearningRateAt(kSchedule, 54), 0.8 * 0.55, 1e-12);
  EXPECT_NEAR(LearningRateAt(kSchedule, 104), 0.08, 1e-12);
}

TEST(LearningRateTest, WithoutWarmupStartsAtThePeak) {
  LearningRateSchedule schedule = kSchedule;
  schedule.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 0), 0.8);
}

TEST(LearningRateTest, AWarmupAsLongAsTheRunNeverDividesByZero) {
  LearningRateSchedule schedule = kSchedule;
  schedule.warmup_steps = schedule.total_steps;
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 103), 0.8);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 104), 0.8);
}

}  // namespace
}  // namespace txl
