#include "tests/bench/bench_model.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

namespace txl {
namespace {

using testing::HasSubstr;

std::string TestData(const std::string& path) {
  return std::string(std::getenv("TXL_TEST_DATA")) + "/" + path;
}

TEST(BenchModelTest, AFileMeansRandomWeightsOfItsShape) {
  BenchModelOptions options = {.path = TestData("bench/small.json")};
  const auto model = LoadBenchModel(options);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->name, "small");
  EXPECT_EQ(model->config.n_layer, 4);
  EXPECT_EQ(model->weights.layers.size(), 4u);
  const auto again = LoadBenchModel(options);
  EXPECT_TRUE(
      at::equal(model->weights.layers[0].wq, again->weights.layers[0].wq));
}

TEST(BenchModelTest, RandomWeightsTakeATailShare) {
  const std::string path = testing::TempDir() + "/two_bins.json";
  ModelConfig config;
  config.vocab_size = 30;
  config.n_layer = config.n_head = 1;
  config.d_head = config.d_model = config.d_embed = config.d_inner = 8;
  config.cutoffs = {20};
  std::ofstream(path) << ModelConfigToJson(config);
  BenchModelOptions options = {.path = path, .tail_share = 0.5};
  const auto model = LoadBenchModel(options);
  ASSERT_TRUE(model.ok()) << model.status();
  // As likely as all 20 words together.
  EXPECT_NEAR(model->weights.cluster_b[0].item<double>(), std::log(20), 1e-6);
}

TEST(BenchModelTest, ADirectoryIsLoaded) {
  BenchModelOptions options = {.path = TestData("golden/sorter")};
  const auto model = LoadBenchModel(options);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->name, "sorter");
  EXPECT_EQ(model->config.mem_len, 23);
}

TEST(BenchModelTest, ErrorsNameTheFile) {
  BenchModelOptions options = {.path = "no/such/model"};
  EXPECT_THAT(LoadBenchModel(options).status().message(),
              HasSubstr("no/such/model"));
}

}  // namespace
}  // namespace txl
