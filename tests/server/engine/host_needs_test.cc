#include "server/engine/host_needs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "model/checkpoint/canonical_tensors.h"
#include "model/checkpoint/weights.h"
#include "server/engine/step_builder.h"
#include "tests/server/engine/tiny_config.h"

namespace txl {
namespace {

TEST(HostNeedsTest, AreThoseOfTheStepThatIsBuiltThen) {
  const ModelConfig config = TinyConfig();
  const Weights weights = RandomWeights(config, 0.1, 1, {});
  for (const char* step : {"auto", "native", "torch"}) {
    StepRunnerOptions options = {.device = "cpu", .step = step, .slots = 2};
    const auto needs = HostNeedsOf(config, options);
    ASSERT_TRUE(needs.ok()) << needs.status();
    const auto built = BuildStep(config, weights, "tiny", options);
    ASSERT_TRUE(built.ok()) << built.status();
    EXPECT_EQ(needs->bytes_per_slot, built->step->BytesPerSlot()) << step;
    EXPECT_EQ(needs->weights, 4 * RequiredParameters(config)) << step;
    EXPECT_EQ(needs->most_slots, options.max_rows);
    EXPECT_GE(needs->step, options.max_rows * config.vocab_size * 4);
  }
}

TEST(HostNeedsTest, FollowTheNumberFormats) {
  StepRunnerOptions options = {
      .device = "cpu", .form = "absorbed", .weights = "bf16"};
  const auto full = HostNeedsOf(TinyConfig(), options);
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_EQ(full->weights, 2 * RequiredParameters(TinyConfig()));
  options.weights = "int4";
  // Two tables of 23 words of 16 numbers are kept in 8 bits.
  EXPECT_EQ(
      HostNeedsOf(TinyConfig(), options)->weights,
      2 * 23 * 16 + (RequiredParameters(TinyConfig()) - 2 * 23 * 16) * 17 / 32);
  options.memory = "f16";
  EXPECT_LT(HostNeedsOf(TinyConfig(), options)->bytes_per_slot,
            full->bytes_per_slot);
}

TEST(HostNeedsTest, NameAnOptionThatIsWrong) {
  StepRunnerOptions options = {.weights = "f8"};
  EXPECT_THAT(HostNeedsOf(TinyConfig(), options).status().message(),
              ::testing::HasSubstr("weights"));
}

using ::testing::HasSubstr;

StepRunnerOptions On(const std::string& device, const std::string& step) {
  return {.device = device, .step = step};
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
