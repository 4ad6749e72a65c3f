// What a native step of 4 bits computes is what one of floats computes with the
// weights rounded.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "model/cpu/native_weights.h"
#include "model/cpu/packed_matrix.h"
#include "tests/model/cpu/native_driver.h"

namespace txl {
namespace {

using ModelAndForm = std::tuple<std::string, AttentionForm>;

class RoundedWeightsTest : public testing::TestWithParam<ModelAndForm> {
 protected:
  RoundedWeightsTest()
      : golden_(LoadGoldenCase(std::get<0>(GetParam()), at::kFloat)) {}

  int64_t length() const { return static_cast<int64_t>(golden_.tokens.size()); }
  NativeStepOptions Options(NumberFormat weights) const {
    NativeStepOptions options;
    options.slots = 1;
    options.spare_rows = 16;
    options.formats.weights = weights;
    options.formats.form = std::get<1>(GetParam());
    return options;
  }
  std::vector<float> Logprobs(const GoldenCase& golden,
                              NumberFormat weights) const {
    auto step = MakeNativeStep(golden, Options(weights));
    return Feed(*step, 0, golden.tokens, 0, length(), 8);
  }

  GoldenCase golden_;
};

double MeanDifference(const std::vector<float>& a,
                      const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum / static_cast<double>(a.size());
}

// What is left is the rounding of words to 8 bits.
TEST_P(RoundedWeightsTest, AreThoseOfTheStep) {
  GoldenCase rounded = golden_;
  rounded.weights = RoundedWeights(golden_.config, golden_.weights,
                                   Options(NumberFormat::kInt4).formats);
  const std::vector<float> of_4_bits = Logprobs(golden_, NumberFormat::kInt4);
  const double apart =
      MeanDifference(of_4_bits, Logprobs(rounded, NumberFormat::kF32));
  const double whole =
      MeanDifference(of_4_bits, Logprobs(golden_, NumberFormat::kF32));
  EXPECT_GT(whole, 0);
  EXPECT_LT(apart, whole / 3);
}

TEST_P(RoundedWeightsTest, OthersAreShared) {
  const auto rounded = [&](NumberFormat format) {
    return RoundedWeights(golden_.config, golden_.weights,
                          Options(format).formats);
  };
  const LayerWeights& own = golden_.weights.layers[0];
  const Weights of_8_bits = rounded(NumberFormat::kInt8);
  EXPECT_TRUE(of_8_bits.layers[0].wq.is_same(own.wq));
  const Weights of_4_bits = rounded(NumberFormat::kInt4);
  EXPECT_FALSE(of_4_bits.layers[0].wq.is_same(own.wq));
  EXPECT_FALSE(of_4_bits.layers[0].wk.equal(own.wk));
  EXPECT_TRUE(of_4_bits.layers[0].u.is_same(own.u));
  EXPECT_TRUE(of_4_bits.embedding[0].w.is_same(golden_.weights.embedding[0].w));
}

INSTANTIATE_TEST_SUITE_P(
    Models, RoundedWeightsTest,
    testing::Combine(testing::Values("kimi-char", "hf-adaptive", "labml-char"),
                     testing::Values(AttentionForm::kProjected,
                                     AttentionForm::kAbsorbed)),
    [](const testing::TestParamInfo<ModelAndForm>& info) {
      std::string name = std::get<0>(info.param);
      std::replace(name.begin(), name.end(), '-', '_');
      return name + "_" + FormName(std::get<1>(info.param));
    });

}  // namespace
}  // namespace txl
