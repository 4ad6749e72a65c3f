// A model directory on a machine whose CUDA device computes it wrongly
// (faulty_cuda_builder.cc), and which LibTorch does not see.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "model/checkpoint/model_directory.h"
#include "server/base/log.h"
#include "server/engine/load_step_runner.h"
#include "tests/model/golden_paths.h"

namespace txl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CudaFallbackTest : public testing::Test {
 protected:
  CudaFallbackTest() {
    options_.slots = 2;
    options_.spare_rows = 8;
    options_.max_rows = 4;
  }
  std::unique_ptr<StepRunner> Load() {
    auto model = OpenModelDirectory(GoldenDirectory("thu"));
    EXPECT_TRUE(model.ok()) << model.status();
    auto runner = LoadStepRunner(*model, options_, &report_);
    EXPECT_TRUE(runner.ok()) << runner.status();
    return runner.ok() ? *std::move(runner) : nullptr;
  }

  StepRunnerOptions options_;
  SelfTestReport report_;
  LogCapture log_;
};

TEST_F(CudaFallbackTest, LibTorchsStepServesForOneThatIsRefused) {
  const auto runner = Load();
  ASSERT_NE(runner, nullptr);
  EXPECT_THAT(runner->info().identity.kernel, StartsWith("torch"));
  EXPECT_EQ(runner->info().slots, 2);
  EXPECT_EQ(report_.result, SelfTestResult::kFellBack);
  EXPECT_STREQ(NameOf(report_.result), "fell_back");  // as the metric has it
  EXPECT_THAT(report_.step, StartsWith("native-cuda"));
  EXPECT_THAT(report_.objection, HasSubstr("session"));
  EXPECT_GT(report_.seconds, 0);
}

TEST_F(CudaFallbackTest, TheLogSaysWhatWasRefusedAndWhy) {
  ASSERT_NE(Load(), nullptr);
  EXPECT_THAT(log_.lines(),
              Contains(AllOf(HasSubstr("ERROR"), HasSubstr("self_test"),
                             HasSubstr("cuda:0"), HasSubstr("native-cuda"),
                             HasSubstr(report_.objection))));
}

TEST_F(CudaFallbackTest, ItServesInFloat32WhateverWasAskedFor) {
  options_.weights = options_.memory = "f16";
  const auto runner = Load();
  ASSERT_NE(runner, nullptr);
  EXPECT_EQ(report_.result, SelfTestResult::kFellBack);
  EXPECT_EQ(runner->info().weight_dtype, "f32");
  EXPECT_EQ(runner->info().identity.row_dtype, "f32");
}

TEST_F(CudaFallbackTest, AskedForByNameTheStepServesUntested) {
  options_.step = "native";
  const auto runner = Load();
  ASSERT_NE(runner, nullptr);
  EXPECT_EQ(runner->info().device, "cuda:0");
  EXPECT_EQ(report_.result, SelfTestResult::kNotRun);
}

}  // namespace
}  // namespace txl
