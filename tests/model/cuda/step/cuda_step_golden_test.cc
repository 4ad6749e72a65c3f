// Every public checkpoint family: log-probabilities of the CUDA step equal
// those of the original code fed token by token.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/model/cuda/step/cuda_driver.h"
#include "tests/model/golden_paths.h"

namespace txl {
namespace {

class CudaStepGoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(CudaStepGoldenTest, PromptsAndTokensEqualTheOriginal) {
  const GoldenCase golden = LoadGoldenCase(GetParam(), at::kFloat);
  CudaStepOptions options;
  options.spare_rows = 32;
  options.max_rows = 32;
  auto step = MakeCudaStep(golden, options);
  // More than any case's memory in prompts, then token by token.
  constexpr int64_t kPrompt = 52;
  constexpr int64_t kLength = 56;
  std::vector<float> found = FeedRows(*step, 0, golden.tokens, 0, kPrompt, 26);
  const std::vector<float> rest =
      FeedRows(*step, 0, golden.tokens, kPrompt, kLength, 1);
  found.insert(found.end(), rest.begin(), rest.end());
  const at::Tensor stepwise = golden.stepwise.contiguous();
  ASSERT_EQ(static_cast<int64_t>(found.size()),
            kLength * golden.config.vocab_size);
  const double* expected = stepwise.const_data_ptr<double>();
  EXPECT_LE(WorstDifference(
                found, std::vector<double>(expected, expected + found.size())),
            golden.tolerance);
}

INSTANTIATE_TEST_SUITE_P(AllFamilies, CudaStepGoldenTest,
                         testing::ValuesIn(GoldenCaseNames()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return GoldenParamName(info.param);
                         });

}  // namespace
}  // namespace txl
