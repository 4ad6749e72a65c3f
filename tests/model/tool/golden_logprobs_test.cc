// txl-model logprobs on golden model directories: the files it writes hold the
// original code's values, for both engines and both ways of feeding.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "model/train/training_state.h"
#include "tests/model/tool/program.h"

namespace txl {
namespace {

std::string CaseFolder(const std::string& name) {
  const char* data = std::getenv("TXL_TEST_DATA");
  return std::string(data != nullptr ? data : "tests") + "/golden/" + name;
}

double Difference(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  EXPECT_EQ(a.scalar_type(), at::kDouble);
  return (a - b).abs().max().item<double>();
}

class GoldenLogprobsTest : public testing::TestWithParam<const char*> {
 protected:
  // The program's output for extra `flags`.
  TensorFile Run(const std::string& flags) {
    const std::string folder = CaseFolder(GetParam());
    const std::string out =
        FreshTestFolder(std::string("logprobs_") + GetParam()) + "/out";
    const ProgramResult result = RunTxlModel(
        "logprobs " + folder + " --tokens " + folder +
        "/expected.safetensors --threads 1 --out " + out + " " + flags);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    const auto file = ReadTensorFile(out);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *file : TensorFile();
  }

  TensorFile expected_ =
      *ReadTensorFile(CaseFolder(GetParam()) + "/expected.safetensors");
};

TEST_P(GoldenLogprobsTest, ReferenceFollowsTheSegments) {
  const TensorFile out = Run("--dtype f64");
  EXPECT_LE(Difference(out.tensors.at("logprobs"),
                       expected_.tensors.at("logprobs_segmented")),
            1e-9);
  EXPECT_LE(Difference(out.tensors.at("memory"),
                       expected_.tensors.at("memory_final")),
            1e-9);
}

TEST_P(GoldenLogprobsTest, ReferenceStepwiseFeedsSingleTokens) {
  const TensorFile out = Run("--dtype f64 --feed stepwise");
  EXPECT_LE(Difference(out.tensors.at("logprobs"),
                       expected_.tensors.at("logprobs_stepwise")),
            1e-9);
  EXPECT_LE(Difference(out.tensors.at("memory"),
                       expected_.tensors.at("memory_final_stepwise")),
            1e-9);
}

TEST_P(GoldenLogprobsTest, ServingGivesTheStepwiseValuesInAnyCuts) {
  for (const char* feed : {"segments", "stepwise"}) {
    const TensorFile out =
        Run(std::string("--dtype f64 --engine serving --feed ") + feed);
    EXPECT_LE(Difference(out.tensors.at("logprobs"),
                         expected_.tensors.at("logprobs_stepwise")),
              1e-9)
        << feed;
    EXPECT_FALSE(out.tensors.contains("memory"));
  }
}

TEST_P(GoldenLogprobsTest, Float32IsTheDefault) {
  const nlohmann::json config = nlohmann::json::parse(
      ReadTestFile(CaseFolder(GetParam()) + "/config.json"));
  const double original =
      config["observed"]["original_float32_vs_float64_max_abs"];
  const double difference =
      Difference(Run("").tensors.at("logprobs"),
                 expected_.tensors.at("logprobs_segmented"));
  EXPECT_LE(difference, std::max(2e-5, 3 * original));
  EXPECT_GT(difference, 1e-12);
}

// One per kind of position, start and softmax; the libraries' tests have all.
INSTANTIATE_TEST_SUITE_P(Cases, GoldenLogprobsTest,
                         testing::Values("kimi-char", "hf-adaptive",
                                         "labml-char", "sorter"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace txl
