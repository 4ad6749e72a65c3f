// Every public checkpoint family: log-probabilities served equal those of the
// original code fed token by token, however the text is cut.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/torch/torch_step.h"
#include "tests/model/torch/golden_case.h"
#include "tests/model/torch/session_driver.h"

namespace txl {
namespace {

using Parameters = std::tuple<std::string, at::ScalarType>;

class TorchStepGoldenTest : public testing::TestWithParam<Parameters> {
 protected:
  TorchStepGoldenTest()
      : golden_(
            LoadGoldenCase(std::get<0>(GetParam()), std::get<1>(GetParam()))) {}

  void ExpectStepwise(const at::Tensor& logprobs, const std::string& cuts) {
    const double worst = MaxAbsDifference(logprobs, golden_.stepwise);
    RecordProperty("worst_" + cuts, absl::StrCat(worst));
    EXPECT_LE(worst, golden_.tolerance) << cuts;
  }

  int64_t length() const { return static_cast<int64_t>(golden_.tokens.size()); }

  GoldenCase golden_;
};

TEST_P(TorchStepGoldenTest, TokenByTokenEqualsTheOriginal) {
  // The smallest ring, so that it wraps around often.
  auto step = MakeStep(golden_, 1, 8);
  step->Clear(0);
  ExpectStepwise(FeedInCuts(*step, 0, golden_.tokens, 0, length(), 1), "1");
}

TEST_P(TorchStepGoldenTest, CutsOfSevenEqualTheOriginal) {
  auto step = MakeStep(golden_, 1, 8);
  step->Clear(0);
  ExpectStepwise(FeedInCuts(*step, 0, golden_.tokens, 0, length(), 7), "7");
}

TEST_P(TorchStepGoldenTest, CutsOfSixtyFourEqualTheOriginal) {
  auto step = MakeStep(golden_, 1, 64);
  step->Clear(0);
  ExpectStepwise(FeedInCuts(*step, 0, golden_.tokens, 0, length(), 64), "64");
}

TEST_P(TorchStepGoldenTest, TheCasesOwnSegmentsEqualTheOriginal) {
  auto step = MakeStep(golden_, 1, length());
  step->Clear(0);
  std::vector<at::Tensor> rows;
  int64_t position = 0;
  for (const int64_t segment : golden_.segments) {
    rows.push_back(
        FeedRange(*step, 0, golden_.tokens, position, position + segment));
    position += segment;
  }
  ASSERT_EQ(position, length());
  ExpectStepwise(at::cat(rows), "segments");
}

std::string CaseName(const testing::TestParamInfo<Parameters>& info) {
  std::string name = std::get<0>(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name +
         (std::get<1>(info.param) == at::kDouble ? "_float64" : "_float32");
}

INSTANTIATE_TEST_SUITE_P(AllFamilies, TorchStepGoldenTest,
                         testing::Combine(testing::ValuesIn(GoldenCaseNames()),
                                          testing::Values(at::kDouble,
                                                          at::kFloat)),
                         CaseName);

}  // namespace
}  // namespace txl
