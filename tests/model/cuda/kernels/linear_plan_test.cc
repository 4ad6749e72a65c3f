#include "model/cuda/kernels/linear_plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "model/cuda/kernels/linear.h"

namespace txl::cuda {
namespace {

constexpr int kH100 = 132;  // processors
constexpr int kA100 = 108;

int Blocks(const LinearShape& shape) {
  const LinearPlan plan = PlanLinear(shape);
  return (shape.rows + plan.rows - 1) / plan.rows *
         ((shape.outputs + plan.outputs - 1) / plan.outputs) * shape.batch;
}

int Splits(const LinearShape& shape, int processors = kH100) {
  return LinearSplits(shape, FinishedBy::kNextKernel, processors);
}

TEST(PlanLinearTest, FewRowsFitIntoOneBlockAndStreamTheWeights) {
  for (int rows = 1; rows <= 32; ++rows) {
    const LinearPlan plan = PlanLinear({rows, 1024, 1024, 1});
    EXPECT_EQ(plan.kernel, LinearKernel::kStream);
    EXPECT_EQ(plan.rows, rows <= 16 ? 16 : 32);
    EXPECT_EQ(plan.input_warps, 4);
    EXPECT_EQ(plan.outputs, 32);
  }
  EXPECT_EQ(PlanLinear({33, 1024, 1024, 1}).kernel, LinearKernel::kTiles);
}

TEST(PlanLinearTest, WarpsShareInputsOnlyWhereEachHasAUnit) {
  const auto warps = [](int inputs) {
    return PlanLinear({1, inputs, 1024, 16}).input_warps;
  };
  EXPECT_EQ(warps(64), 1);
  EXPECT_EQ(warps(128), 2);
  EXPECT_EQ(warps(192), 2);
  EXPECT_EQ(warps(256), 4);
  EXPECT_EQ(PlanLinear({1, 64, 1024, 16}).outputs, 128);
}

TEST(PlanLinearTest, LargeTilesAreForProductsThatFillADeviceWithThem) {
  const auto side = [](const LinearShape& shape) {
    const LinearPlan plan = PlanLinear(shape);
    EXPECT_EQ(plan.kernel, LinearKernel::kTiles);
    EXPECT_EQ(plan.rows, plan.outputs);
    return plan.rows;
  };
  EXPECT_EQ(side({512, 1024, 4096, 1}), 128);
  EXPECT_EQ(side({128, 1024, 20032, 1}), 128);
  EXPECT_EQ(side({512, 1024, 1024, 1}), 64);
  EXPECT_EQ(side({64, 1024, 20032, 1}), 64);
  EXPECT_EQ(side({512, 64, 1024, 16}), 64);  // one unit of inputs
}

TEST(LinearSplitsTest, UseMostOfTheDeviceWhereTheOutputsDoNot) {
  for (const LinearShape& shape :
       {LinearShape{1, 1024, 1024, 1}, LinearShape{16, 1024, 1024, 1},
        LinearShape{16, 4096, 1024, 1}, LinearShape{8, 1024, 64, 16},
        LinearShape{32, 4096, 1024, 1}}) {
    for (const int processors : {kA100, kH100}) {
      const int blocks = Blocks(shape) * Splits(shape, processors);
      EXPECT_GT(blocks, processors / 2);
      EXPECT_LE(blocks, processors);
    }
  }
}

TEST(LinearSplitsTest, AreNotThereWhereTheOutputsFillTheDevice) {
  EXPECT_EQ(Splits({16, 1024, 4096, 1}), 1);
  EXPECT_EQ(Splits({16, 1024, 20032, 1}), 1);
  EXPECT_EQ(Splits({512, 1024, 1024, 1}), 1);
  EXPECT_EQ(Splits({512, 4096, 1024, 1}), 1);
  EXPECT_EQ(Splits({16, 1024, 1024, 1}, 1), 1);
}

// A head's values of a few rows: their own kernel that adds up would take
// longer than what is won. Many inputs and few outputs are still split.
TEST(LinearSplitsTest, AreFewerWhereAddingUpTakesAKernel) {
  const auto apart = [](const LinearShape& shape) {
    return LinearSplits(shape, FinishedBy::kOwnKernel, kH100);
  };
  for (const int rows : {1, 8, 32}) {
    const LinearShape values = {rows, 1024, 64, 16};
    EXPECT_GT(Splits(values), 1);
    EXPECT_EQ(apart(values), 1);
    EXPECT_GT(apart({rows, 16384, 64, 1}), 1);
  }
}

TEST(LinearSplitsTest, AreNeverMoreThanThereAreUnitsOfInputs) {
  for (int rows = 1; rows <= 600; rows = rows * 3 / 2 + 1) {
    for (const int inputs : {64, 128, 448, 1024}) {
      for (const int outputs : {64, 448, 1024, 20032}) {
        for (const int processors : {1, 56, kH100, 1000}) {
          const int splits = Splits({rows, inputs, outputs, 1}, processors);
          EXPECT_GE(splits, 1);
          EXPECT_LE(splits, inputs / kLinearUnit);
        }
      }
    }
  }
}

}  // namespace
}  // namespace txl::cuda
