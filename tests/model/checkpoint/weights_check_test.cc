// Weights that a step cannot be made from are refused before it packs them.

#include "model/checkpoint/weights_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

ModelConfig TwoBins() {
  ModelConfig config;
  config.vocab_size = 20;
  config.n_layer = 2;
  config.n_head = 2;
  config.d_head = 4;
  config.d_model = 8;
  config.d_embed = 8;
  config.d_inner = 8;
  config.mem_len = 4;
  config.cutoffs = {6};
  config.div_val = 1;
  config.tie_projs = {false, false};
  return config;
}

Weights WeightsIn(at::ScalarType dtype) {
  LoadOptions options;
  options.dtype = dtype;
  return RandomWeights(TwoBins(), 0.02, 1, options);
}

TEST(WeightsCheckTest, WeightsOfTheConfigAreTaken) {
  const Weights weights = WeightsIn(at::kFloat);
  EXPECT_TRUE(CheckCounts(weights, TwoBins()).ok());
  EXPECT_TRUE(CheckFloat32OnCpu(weights, TwoBins(), "this step").ok());
}

TEST(WeightsCheckTest, EveryCountMustBeTheConfigs) {
  Weights layers = WeightsIn(at::kFloat), embedding = layers, head = layers;
  layers.layers.pop_back();
  embedding.embedding.pop_back();
  head.head.pop_back();
  for (const Weights& weights : {layers, embedding, head}) {
    for (const absl::Status& status :
         {CheckCounts(weights, TwoBins()),
          CheckFloat32OnCpu(weights, TwoBins(), "this step")}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(status.message(), HasSubstr("do not fit the config"));
    }
  }
}

TEST(WeightsCheckTest, ADoubleIsRefusedByAStepThatPacksFloats) {
  const Weights weights = WeightsIn(at::kDouble);
  EXPECT_TRUE(CheckCounts(weights, TwoBins()).ok());
  const absl::Status status =
      CheckFloat32OnCpu(weights, TwoBins(), "this step");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("this step takes float32"));
}

}  // namespace
}  // namespace txl
