#include "server/engine/step_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "model/checkpoint/weights.h"
#include "tests/server/engine/tiny_config.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<BuiltStep> Build(const StepRunnerOptions& options) {
  const ModelConfig config = TinyConfig();
  return BuildStep(config, RandomWeights(config, 0.1, 1, {}), "tiny", options);
}

TEST(StepBuilderTest, NativeOnTheCpuUnlessTorchIsAskedFor) {
  StepRunnerOptions options = {.slots = 2};
  const auto native = Build(options);
  ASSERT_TRUE(native.ok()) << native.status();
  EXPECT_THAT(native->step->identity().kernel, HasSubstr("native-cpu"));
  EXPECT_EQ(native->device, "cpu");
  EXPECT_EQ(native->slots, 2);
  options.step = "torch";
  const auto torch = Build(options);
  ASSERT_TRUE(torch.ok()) << torch.status();
  EXPECT_EQ(torch->form, "absorbed");
  EXPECT_EQ(torch->weight_format, "f32");
}

TEST(StepBuilderTest, AsManySlotsAsFitButNoMoreThanRowsOfAStep) {
  StepRunnerOptions options = {.max_rows = 5};
  EXPECT_EQ(Build(options)->slots, 5);  // the host has room for more
  const int64_t slot = Build(options)->step->BytesPerSlot();
  options.slot_bytes = 3 * slot + slot / 2;
  EXPECT_EQ(Build(options)->slots, 3);
  options.slot_bytes = slot - 1;
  EXPECT_EQ(Build(options).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(StepBuilderTest, SlotsThatAreCountedOrCapped) {
  StepRunnerOptions options = {.slot_bytes = 1000};
  EXPECT_EQ(*SlotCount(100, 50, options), 10);
  EXPECT_EQ(*SlotCount(100, 7, options), 7);
  options.slots = 12;  // what was asked for is not capped
  EXPECT_EQ(*SlotCount(100, 7, options), 12);
}

TEST(StepBuilderTest, OptionsThatNoStepTakesAreNamed) {
  const auto message = [](auto change) {
    StepRunnerOptions options;
    change(options);
    return std::string(CheckStepOptions(options).message());
  };
  EXPECT_EQ(message([](auto&) {}), "");
  EXPECT_THAT(message([](auto& o) { o.slots = -1; }), HasSubstr("slots"));
  EXPECT_THAT(message([](auto& o) { o.slot_bytes = -1; }),
              HasSubstr("slot memory"));
  EXPECT_THAT(message([](auto& o) { o.spare_rows = 7; }),
              HasSubstr("spare_rows"));
  EXPECT_THAT(message([](auto& o) { o.max_rows = 0; }), HasSubstr("max_rows"));
  EXPECT_THAT(message([](auto& o) { o.step = "fast"; }), HasSubstr("step"));
  EXPECT_THAT(message([](auto& o) { o.threads = 0; }), HasSubstr("threads"));
}

TEST(StepBuilderTest, FormatsThatAStepDoesNotKnowAreNamed) {
  StepRunnerOptions options = {.weights = "f8"};
  EXPECT_THAT(Build(options).status().message(), HasSubstr("weights: \"f8\""));
  options = {};
  options.memory = "int4";
  EXPECT_THAT(Build(options).status().message(), HasSubstr("memory"));
  options = {};
  options.step = "torch";
  options.weights = "f16";
  EXPECT_THAT(Build(options).status().message(), HasSubstr("torch"));
  options.weights = "f32";
  options.form = "projected";
  EXPECT_THAT(Build(options).status().message(), HasSubstr("form"));
}

}  // namespace
}  // namespace txl
