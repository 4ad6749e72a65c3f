// Every public checkpoint family: log-probabilities of the native step equal
// those of the original code fed token by token, and its bits do not depend on
// how the text is cut.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/cpu/attention_form.h"
#include "tests/model/cpu/native_driver.h"

namespace txl {
namespace {

using ModelAndForm = std::tuple<std::string, AttentionForm>;

class NativeStepGoldenTest : public testing::TestWithParam<ModelAndForm> {
 protected:
  NativeStepGoldenTest()
      : golden_(LoadGoldenCase(std::get<0>(GetParam()), at::kFloat)) {}

  int64_t length() const { return static_cast<int64_t>(golden_.tokens.size()); }

  std::vector<float> FedInCuts(int64_t cut) {
    NativeStepOptions options;
    options.spare_rows = std::max<int64_t>(8, cut);
    options.formats.form = std::get<1>(GetParam());
    auto step = MakeNativeStep(golden_, options);
    return Feed(*step, 0, golden_.tokens, 0, length(), cut);
  }

  GoldenCase golden_;
};

TEST_P(NativeStepGoldenTest, TokenByTokenEqualsTheOriginal) {
  const std::vector<float> rows = FedInCuts(1);
  const at::Tensor expected = golden_.stepwise.contiguous();
  ASSERT_EQ(static_cast<int64_t>(rows.size()), expected.numel());
  double worst = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double error =
        std::abs(rows[i] - expected.const_data_ptr<double>()[i]);
    worst = std::max(worst, std::isnan(error) ? 1e9 : error);
  }
  RecordProperty("worst", absl::StrCat(worst));
  EXPECT_LE(worst, golden_.tolerance);
}

TEST_P(NativeStepGoldenTest, EveryCutGivesTheSameBits) {
  const std::vector<float> one = FedInCuts(1);
  for (const int64_t cut : {2, 5, 7, 64, 100}) {
    EXPECT_EQ(FedInCuts(cut), one) << "cut " << cut;
  }
}

std::string CaseName(const testing::TestParamInfo<ModelAndForm>& info) {
  std::string name = std::get<0>(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name + "_" + FormName(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(
    AllFamilies, NativeStepGoldenTest,
    testing::Combine(testing::ValuesIn(GoldenCaseNames()),
                     testing::Values(AttentionForm::kProjected,
                                     AttentionForm::kAbsorbed)),
    CaseName);

}  // namespace
}  // namespace txl
