#include "server/engine/step_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace txl {
namespace {

using ::testing::HasSubstr;

StepRunnerOptions On(const std::string& device, const std::string& step) {
  StepRunnerOptions options;
  options.device = device;
  options.step = step;
  return options;
}

TEST(StepPlaceTest, TheNativeCudaStepRunsWhereItIsAskedFor) {
  const auto first = ChooseStepPlaceOf(On("cuda", "native"), 2);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->native_cuda, 0);
  EXPECT_TRUE(first->weights.is_cpu());  // it takes them there itself
  EXPECT_EQ(ChooseStepPlaceOf(On("cuda:1", "native"), 2)->native_cuda, 1);
  EXPECT_EQ(ChooseStepPlaceOf(On("auto", "native"), 2)->native_cuda, 0);
}

TEST(StepPlaceTest, NativeIsTheCpuWhereThatIsMeantOrNothingElseIsThere) {
  EXPECT_EQ(ChooseStepPlaceOf(On("cpu", "native"), 2)->native_cuda,
            std::nullopt);
  EXPECT_EQ(ChooseStepPlaceOf(On("auto", "native"), 0)->native_cuda,
            std::nullopt);
}

// With a self-test before it serves.
TEST(StepPlaceTest, WithoutANameItIsMeantWhereThereIsADevice) {
  EXPECT_EQ(ChooseStepPlaceOf(On("auto", "auto"), 2)->native_cuda, 0);
  EXPECT_EQ(ChooseStepPlaceOf(On("cuda:1", "auto"), 2)->native_cuda, 1);
  EXPECT_EQ(ChooseStepPlaceOf(On("cpu", "auto"), 2)->native_cuda, std::nullopt);
  EXPECT_EQ(ChooseStepPlaceOf(On("auto", "auto"), 0)->native_cuda,
            std::nullopt);
}

TEST(StepPlaceTest, TorchNeverMeansTheNativeCudaStep) {
  EXPECT_EQ(ChooseStepPlaceOf(On("cpu", "torch"), 2)->native_cuda,
            std::nullopt);
  EXPECT_EQ(ChooseStepPlaceOf(On("auto", "torch"), 2)->native_cuda,
            std::nullopt);
}

TEST(StepPlaceTest, ADeviceThatTheNativeStepDoesNotSeeIsNamed) {
  const auto none = ChooseStepPlaceOf(On("cuda", "native"), 0);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(none.status().message(), HasSubstr("the native step"));
  const auto third = ChooseStepPlaceOf(On("cuda:2", "native"), 2);
  EXPECT_THAT(third.status().message(), HasSubstr("cuda:2"));
  EXPECT_EQ(ChooseStepPlaceOf(On("gpu", "native"), 2).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace txl
