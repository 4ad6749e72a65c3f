#include "server/scheduler/step_cost.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

// Milliseconds of a step.
double Truth(int64_t streams, int64_t guesses) {
  return 0.4 + 0.2 * static_cast<double>(streams) +
         0.05 * static_cast<double>(guesses);
}

TEST(StepCostTest, LearnsFromStepsOfManyShapes) {
  StepCost cost;
  EXPECT_FALSE(cost.known());
  for (int i = 0; i < 200; ++i) {
    cost.Note(1 + i % 5, i % 7, Truth(1 + i % 5, i % 7));
  }
  EXPECT_TRUE(cost.known());
  EXPECT_NEAR(cost.OfGuess(), 0.05, 0.002);
  EXPECT_NEAR(cost.Seconds(1, 0), 0.6, 0.01);
  EXPECT_NEAR(cost.Seconds(32, 10), Truth(32, 10), 0.2);
}

TEST(StepCostTest, WhatStepsDoNotShowIsAssumed) {
  StepCost cost;
  for (int i = 0; i < 50; ++i) cost.Note(1, 0, 0.8);
  EXPECT_NEAR(cost.Seconds(1, 0), 0.8, 0.01);
  // Half a stream's row, which is half of the step.
  EXPECT_NEAR(cost.OfGuess(), 0.2, 0.01);
}

TEST(StepCostTest, ForgetsWhatWasSo) {
  StepCost cost;
  for (int i = 0; i < 300; ++i) cost.Note(1, i % 4, 5 * Truth(1, i % 4));
  for (int i = 0; i < 1000; ++i) cost.Note(1, i % 4, Truth(1, i % 4));
  EXPECT_NEAR(cost.OfGuess(), 0.05, 0.005);
  EXPECT_NEAR(cost.Seconds(1, 0), 0.6, 0.02);
}

TEST(StepCostTest, AStepThatStoodStillHardlyCounts) {
  StepCost cost;
  for (int i = 0; i < 100; ++i) cost.Note(1, i % 4, Truth(1, i % 4));
  cost.Note(1, 3, 1000);
  EXPECT_LT(cost.Seconds(1, 0), 0.7);
  EXPECT_LT(cost.OfGuess(), 0.1);
}

TEST(StepCostTest, NothingCostsLessThanNothing) {
  StepCost cost;
  for (int i = 0; i < 100; ++i) cost.Note(1, i % 4, 1 - 0.2 * (i % 4));
  EXPECT_EQ(cost.OfGuess(), 0);
  EXPECT_GT(cost.Seconds(1, 3), 0);
}

}  // namespace
}  // namespace txl
