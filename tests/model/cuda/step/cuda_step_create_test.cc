// What a step says of itself, and how it refuses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <string>

#include "tests/model/cuda/step/cuda_driver.h"
#include "tests/model/cuda/step/cuda_step.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

ModelConfig Config() {
  ModelConfig config;
  config.vocab_size = 20;
  config.n_layer = 2;
  config.n_head = 2;
  config.d_head = 8;
  config.d_model = 20;
  config.d_embed = 20;
  config.d_inner = 24;
  config.mem_len = 30;
  return config;
}

class CudaStepCreateTest : public testing::Test {
 protected:
  std::string Message(const CudaStepOptions& options) const {
    return std::string(CreateCudaStep(model_.config, model_.weights, options)
                           .status()
                           .message());
  }

  const RandomCase model_ = CaseOf(Config(), 1, 20);
};

TEST_F(CudaStepCreateTest, NamesTheOptionThatIsWrong) {
  CudaStepOptions options;
  options.slots = 0;
  EXPECT_THAT(Message(options), HasSubstr("slots"));
  options = {};
  options.spare_rows = 7;
  EXPECT_THAT(Message(options), HasSubstr("spare_rows"));
  options = {};
  options.max_rows = 0;
  EXPECT_THAT(Message(options), HasSubstr("max_rows"));
  options.max_rows = kMostCudaRows + 1;
  EXPECT_THAT(Message(options), HasSubstr("max_rows"));
  options = {};
  options.memory = NumberFormat::kInt8;
  EXPECT_THAT(Message(options), HasSubstr("int8"));
  options = {};
  options.weights = NumberFormat::kInt4;
  EXPECT_THAT(Message(options), HasSubstr("int4"));
  options = {};
  options.device = 99;
  EXPECT_THAT(Message(options), HasSubstr("device"));
  RandomCase doubles = model_;
  doubles.weights = RandomWeights(model_.config, 0.1, 1, {at::kDouble});
  EXPECT_THAT(
      CreateCudaStep(doubles.config, doubles.weights, {}).status().message(),
      HasSubstr("float32"));
}

TEST_F(CudaStepCreateTest, MoreSlotsThanFitAreOutOfMemory) {
  CudaStepOptions options;
  options.slots = int64_t{1} << 36;
  try {
    CreateCudaStep(model_.config, model_.weights, options).IgnoreError();
    FAIL() << "there was room";
  } catch (const std::bad_alloc& error) {
    EXPECT_THAT(error.what(),
                testing::ContainsRegex("no room for [0-9]+ bytes"));
  }
  options.slots = 1;  // what had been taken is free again
  FeedRows(*MakeCudaStep(model_, options), 0, model_.tokens, 0, 10, 10);
}

TEST_F(CudaStepCreateTest, TellsItsRingIdentityAndSize) {
  CudaStepOptions options;
  options.slots = 2;
  options.spare_rows = 10;
  options.weights = NumberFormat::kF16;
  options.memory = NumberFormat::kBF16;
  options.fingerprint = "f";
  auto step = MakeCudaStep(model_, options);
  EXPECT_EQ(step->ring().mem_len, 30);
  EXPECT_EQ(step->ring().capacity(), 64);
  EXPECT_EQ(step->ring().window, 31);
  EXPECT_FALSE(step->ring().zero_start);
  // Two layers of 64 rows of 20 numbers, padded to 64, of 2 bytes.
  EXPECT_EQ(step->BytesPerSlot(), 2 * 64 * 64 * 2);
  EXPECT_EQ(CudaStepSlotBytes(model_.config, 10, NumberFormat::kBF16),
            step->BytesPerSlot());
  const StateIdentity& identity = step->identity();
  EXPECT_EQ(identity.kernel, "native-cuda-absorbed-weights-f16");
  EXPECT_EQ(identity.row_dtype, "bf16");
  EXPECT_EQ(identity.d_model, 20);
  EXPECT_EQ(identity.n_layer, 2);
  EXPECT_EQ(identity.window, 31);
  EXPECT_FALSE(step->derives());
}

TEST_F(CudaStepCreateTest, RefusesImagesOfOthersAndLeavesTheSlotAsItWas) {
  auto step = MakeCudaStep(model_, {});
  FeedRows(*step, 0, model_.tokens, 0, 10, 10);
  const StateImage own = step->Export(0, 10);
  EXPECT_EQ(own.rows, 10);
  EXPECT_EQ(own.Bytes(), 2 * 10 * 20 * 4);
  StateImage other = own;
  other.identity.kernel = "native-cpu-absorbed";
  other.Seal();
  EXPECT_THAT(step->Import(0, other).message(), HasSubstr("kernel"));
  other = own;
  other.position = 11;
  other.Seal();
  EXPECT_THAT(step->Import(0, other).message(), HasSubstr("position 11"));
  EXPECT_EQ(step->Export(0, 10).data, own.data);
}

}  // namespace
}  // namespace txl
