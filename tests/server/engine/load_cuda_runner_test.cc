// A model directory on a machine with a CUDA device that the native step sees
// (the emulated one) and LibTorch does not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "model/checkpoint/model_directory.h"
#include "server/engine/load_step_runner.h"
#include "tests/model/golden_paths.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

class LoadCudaRunnerTest : public testing::Test {
 protected:
  LoadCudaRunnerTest() {
    options_.slots = 2;
    options_.spare_rows = 8;
    options_.max_rows = 4;
  }
  absl::StatusOr<std::unique_ptr<StepRunner>> Load() const {
    auto model = OpenModelDirectory(GoldenDirectory("thu"));
    if (!model.ok()) return model.status();
    return LoadStepRunner(*model, options_, &report_);
  }
  // "cuda:0 native-cuda-...", or the error.
  std::string Loaded() const {
    const auto runner = Load();
    if (!runner.ok()) return runner.status().ToString();
    const RunnerInfo& info = (*runner)->info();
    return info.device + " " + info.identity.kernel;
  }

  StepRunnerOptions options_;
  mutable SelfTestReport report_;
};

TEST_F(LoadCudaRunnerTest, WithoutANameItServesOnceItIsTested) {
  EXPECT_THAT(Loaded(), HasSubstr("cuda:0 native-cuda"));
  EXPECT_EQ(report_.result, SelfTestResult::kPassed) << report_.objection;
  EXPECT_GT(report_.seconds, 0);
}

TEST_F(LoadCudaRunnerTest, InEachOfItsFormats) {
  for (const char* format : {"f16", "bf16"}) {
    options_.weights = options_.memory = format;
    EXPECT_THAT(Loaded(), HasSubstr("cuda:0 native-cuda"));
    EXPECT_EQ(report_.result, SelfTestResult::kPassed) << report_.objection;
  }
}

TEST_F(LoadCudaRunnerTest, AskedForByNameItIsNotTested) {
  options_.step = "native";
  EXPECT_THAT(Loaded(), HasSubstr("cuda:0 native-cuda"));
  EXPECT_EQ(report_.result, SelfTestResult::kNotRun);
}

// LibTorch sees no device here.
TEST_F(LoadCudaRunnerTest, WhatItDoesNotTakeIsForTheTorchStep) {
  options_.banned_ids = 1000;
  EXPECT_THAT(Loaded(), HasSubstr("cpu torch"));
  EXPECT_EQ(report_.result, SelfTestResult::kNotRun);
}

TEST_F(LoadCudaRunnerTest, TheCpuServesWhereItIsMeant) {
  options_.device = "cpu";
  EXPECT_THAT(Loaded(), HasSubstr("cpu native-cpu"));
}

TEST_F(LoadCudaRunnerTest, AskedForByNameItIsHadOrAnError) {
  options_.step = "native";
  EXPECT_THAT(Loaded(), HasSubstr("cuda:0 native-cuda"));
  options_.form = "projected";
  EXPECT_THAT(Loaded(), HasSubstr("INVALID_ARGUMENT: form"));
}

TEST_F(LoadCudaRunnerTest, RunningOutOfMemoryIsAnErrorThatNamesBytes) {
  options_.step = "native";
  options_.slots = 1 << 20;
  const auto runner = Load();
  EXPECT_EQ(runner.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(runner.status().message()),
              testing::ContainsRegex("no room for [0-9]+ bytes"));
  options_.slots = 2;  // nothing of it is left behind
  EXPECT_THAT(Loaded(), HasSubstr("cuda:0 native-cuda"));
}

}  // namespace
}  // namespace txl
