// The native CUDA step under the engine, on the emulated device
// (model/cuda/device/runtime.h).

#include "server/engine/cuda_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

ModelConfig TinyConfig() {
  ModelConfig config;
  config.vocab_size = 23;
  config.n_layer = 1;
  config.n_head = 2;
  config.d_head = 8;
  config.d_model = 16;
  config.d_embed = 16;
  config.d_inner = 24;
  config.mem_len = 9;
  return config;
}

StepRunnerOptions SmallOptions() {
  StepRunnerOptions options;
  options.slots = 3;
  options.spare_rows = 8;
  options.max_rows = 4;
  return options;
}

absl::StatusOr<BuiltStep> Build(const StepRunnerOptions& options) {
  const ModelConfig config = TinyConfig();
  return BuildCudaStep(config, RandomWeights(config, 0.1, 1, {}), "tiny",
                       options, 0);
}

TEST(CudaBuilderTest, BuildsTheStepInTheFormatsThatAreAskedFor) {
  ASSERT_EQ(NativeCudaDevices(), 1);
  StepRunnerOptions options = SmallOptions();
  options.weights = "bf16";
  options.memory = "f16";
  const auto built = Build(options);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->device, "cuda:0");
  EXPECT_EQ(built->form, "absorbed");
  EXPECT_EQ(built->weight_format, "bf16");
  EXPECT_EQ(built->slots, 3);
  ASSERT_NE(built->sampling, nullptr);
  EXPECT_EQ(built->step, nullptr);
  const StateIdentity& identity = built->sampling->identity();
  EXPECT_EQ(identity.row_dtype, "f16");
  EXPECT_THAT(identity.kernel, HasSubstr("native-cuda"));
  EXPECT_THAT(identity.kernel, HasSubstr("bf16"));
}

TEST(CudaBuilderTest, WhatTheStepDoesNotTakeIsNamed) {
  const auto message = [](auto change) {
    StepRunnerOptions options = SmallOptions();
    change(options);
    return std::string(Build(options).status().message());
  };
  EXPECT_THAT(message([](auto& o) { o.form = "projected"; }),
              HasSubstr("form"));
  EXPECT_THAT(message([](auto& o) { o.derived = "f16"; }),
              HasSubstr("derived"));
  EXPECT_THAT(message([](auto& o) { o.products = "int8"; }),
              HasSubstr("products"));
  EXPECT_THAT(message([](auto& o) { o.weights = "int8"; }), HasSubstr("int8"));
  EXPECT_THAT(message([](auto& o) { o.weights = "int4"; }), HasSubstr("int4"));
  EXPECT_THAT(message([](auto& o) { o.memory = "f8"; }), HasSubstr("memory"));
}

TEST(CudaBuilderTest, WhatTheDeviceCannotSampleIsForTheTorchStep) {
  StepRunnerOptions options = SmallOptions();
  options.banned_ids = 1000;
  const absl::Status status = Build(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("1000 banned ids"));
  EXPECT_THAT(status.message(), HasSubstr("torch"));
}

// As the server asks: its default limits, for a model of one end token.
TEST(CudaBuilderTest, TheDeviceSamplesWhatItCanServeWhole) {
  StepRunnerOptions options = SmallOptions();
  options.banned_ids = 64 + 1;
  options.top_logprobs = 20;
  const ModelConfig plain = TinyConfig();
  EXPECT_TRUE(SamplesOnCudaDevice(plain, options));
  StepRunnerOptions more = options;
  more.banned_ids = 1000;
  EXPECT_FALSE(SamplesOnCudaDevice(plain, more));
  more = options;
  more.top_logprobs = 21;
  EXPECT_FALSE(SamplesOnCudaDevice(plain, more));
  ModelConfig clusters = plain;
  for (int64_t end = 1; end <= 16; ++end) clusters.cutoffs.push_back(end);
  EXPECT_TRUE(SamplesOnCudaDevice(clusters, options));
  clusters.cutoffs.push_back(17);
  EXPECT_FALSE(SamplesOnCudaDevice(clusters, options));
}

TEST(CudaBuilderTest, SlotsAreNotCappedByTheRowsOfAStep) {
  StepRunnerOptions options = SmallOptions();
  const int64_t slot = Build(options)->sampling->BytesPerSlot();
  options.slots = 0;
  options.slot_bytes = 9 * slot;
  EXPECT_EQ(Build(options)->slots, 9);
  options.slot_bytes = slot - 1;
  EXPECT_EQ(Build(options).status().code(),
            absl::StatusCode::kResourceExhausted);
}

// The emulated device has 1 GiB: less than is left to itself.
TEST(CudaBuilderTest, TheReserveIsNotForSlots) {
  StepRunnerOptions options = SmallOptions();
  options.slots = 0;
  options.slot_bytes = 0;
  const auto built = Build(options);
  EXPECT_EQ(built.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(CudaBuilderTest, AMissingDeviceIsAnError) {
  const ModelConfig config = TinyConfig();
  EXPECT_THROW(BuildCudaStep(config, RandomWeights(config, 0.1, 1, {}), "tiny",
                             SmallOptions(), 3)
                   .IgnoreError(),
               std::exception);
}

}  // namespace
}  // namespace txl
