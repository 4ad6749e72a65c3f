#include "model/train/training_state.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace txl {
namespace {

TEST(TensorFileTest, GivesBackEveryDtypeBitForBit) {
  TensorFile file;
  for (at::ScalarType dtype : {at::kDouble, at::kFloat, at::kHalf,
                               at::kBFloat16, at::kLong, at::kInt, at::kByte}) {
    file.tensors[c10::toString(dtype)] =
        at::randint(0, 100, {3, 2}, at::kLong).to(dtype);
  }
  file.tensors["empty"] = at::empty({2, 0, 3});
  file.tensors["scalar"] = at::scalar_tensor(2.5);
  file.metadata = {{"run", "a \"quoted\" text"}};
  const std::string path = testing::TempDir() + "/tensor_file.safetensors";
  ASSERT_TRUE(WriteTensorFile(path, file).ok());
  const auto read = ReadTensorFile(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->metadata, file.metadata);
  ASSERT_EQ(read->tensors.size(), file.tensors.size());
  for (const auto& [name, tensor] : file.tensors) {
    EXPECT_EQ(read->tensors.at(name).scalar_type(), tensor.scalar_type());
    EXPECT_TRUE(read->tensors.at(name).equal(tensor)) << name;
  }
}

TEST(TensorFileTest, StridedTensorsAreWrittenInRowOrder) {
  const at::Tensor strided = at::arange(6).view({2, 3}).t();
  const std::string path = testing::TempDir() + "/strided.safetensors";
  ASSERT_TRUE(WriteTensorFile(path, {{{"x", strided}}, {}}).ok());
  EXPECT_TRUE(ReadTensorFile(path)->tensors.at("x").equal(strided));
}

TEST(TensorFileTest, ADtypeWithoutANameIsRefused) {
  const auto status =
      WriteTensorFile(testing::TempDir() + "/complex.safetensors",
                      {{{"x", at::zeros({1}, at::kComplexFloat)}}, {}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), testing::HasSubstr("tensor x"));
}

// Two layers, an adaptive embedding of two bins with projections of one width.
ModelConfig TwoBins() {
  ModelConfig config;
  config.vocab_size = 9;
  config.n_layer = 2;
  config.n_head = 2;
  config.d_head = 3;
  config.d_model = 6;
  config.d_embed = 4;
  config.d_inner = 5;
  config.cutoffs = {4};
  config.tie_weight = true;
  config.tie_projs = {false, true};
  return config;
}

Weights TwoBinWeights() {
  Weights weights = RandomWeights(TwoBins(), 0.5, 3, {});
  for (EmbeddingBin& bin : weights.embedding) bin.proj = at::ones({6, 4});
  return weights;
}

TEST(MakeTrainableTest, WhatTheOriginalHasOnceIsTrainedOnce) {
  Weights weights = TwoBinWeights();
  weights.layers[1].u = weights.layers[0].u.clone();
  MakeTrainable(TwoBins(), weights);
  EXPECT_TRUE(weights.layers[1].u.is_same(weights.layers[0].u));
  EXPECT_TRUE(weights.embedding[1].proj.is_same(weights.embedding[0].proj));
  EXPECT_TRUE(weights.head[1].proj.is_same(weights.embedding[0].proj));
}

TEST(MakeTrainableTest, BiasesOfEachLayersOwnStayApart) {
  Weights weights = TwoBinWeights();
  weights.layers[0].v.zero_();  // unused ones are equal, and are not one
  weights.layers[1].v.zero_();
  MakeTrainable(TwoBins(), weights);
  EXPECT_FALSE(weights.layers[1].u.is_same(weights.layers[0].u));
  EXPECT_FALSE(weights.layers[1].v.is_same(weights.layers[0].v));
}

TEST(TensorFileTest, AMissingFileIsNotFound) {
  EXPECT_EQ(ReadTensorFile("/no/such.safetensors").status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace

}  // namespace txl
