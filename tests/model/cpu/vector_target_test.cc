// Every instruction set of this machine, each for itself: the numbers are the
// original code's, and the bits depend on no cut.

#include "model/cpu/vector_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "model/cpu/attention_form.h"
#include "tests/model/cpu/native_driver.h"

namespace txl {
namespace {

using ::testing::Contains;

class VectorTargetTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(UseVectorTarget(GetParam())); }
  void TearDown() override { UseVectorTarget(VectorTargets().front()); }
};

TEST_P(VectorTargetTest, IsTheOneThatRuns) {
  EXPECT_EQ(VectorTarget(), GetParam());
  const GoldenCase golden = LoadGoldenCase("kimi-char", at::kFloat);
  const std::string kernel = MakeNativeStep(golden, {})->identity().kernel;
  EXPECT_NE(kernel.find("-" + GetParam() + "-"), std::string::npos) << kernel;
}

TEST_P(VectorTargetTest, EveryFamilyHasTheOriginalsNumbersInAnyCut) {
  for (const std::string& name : GoldenCaseNames()) {
    const GoldenCase golden = LoadGoldenCase(name, at::kFloat);
    const int64_t length = static_cast<int64_t>(golden.tokens.size());
    for (const AttentionForm form :
         {AttentionForm::kProjected, AttentionForm::kAbsorbed}) {
      NativeStepOptions options;
      options.slots = 2;
      options.formats.form = form;
      auto step = MakeNativeStep(golden, options);
      const std::vector<float> seen =
          Feed(*step, 0, golden.tokens, 0, length, 1);
      const at::Tensor expected = golden.stepwise.contiguous();
      double worst = 0;
      for (size_t i = 0; i < seen.size(); ++i) {
        const double error =
            std::abs(seen[i] - expected.const_data_ptr<double>()[i]);
        worst = std::max(worst, std::isnan(error) ? 1e9 : error);
      }
      EXPECT_LE(worst, golden.tolerance) << name << " " << FormName(form);
      EXPECT_TRUE(Feed(*step, 1, golden.tokens, 0, length, 7) == seen)
          << name << " " << FormName(form);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Machine, VectorTargetTest,
                         testing::ValuesIn(VectorTargets()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

TEST(VectorTargets, BeginWithTheOneThatIsChosenByItself) {
  EXPECT_EQ(VectorTargets().front(), VectorTarget());
  EXPECT_FALSE(UseVectorTarget("8087"));
  EXPECT_THAT(VectorTargets(), Contains(VectorTarget()));
}

}  // namespace
}  // namespace txl
