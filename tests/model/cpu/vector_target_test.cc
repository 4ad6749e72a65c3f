// Every instruction set of this machine, each for itself: the numbers are the
// original code's, and the bits depend on no cut.

#include "model/cpu/vector_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "model/cpu/attention_form.h"
#include "tests/model/cpu/native_driver.h"

namespace txl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class VectorTargetTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(UseVectorTarget(GetParam())); }
  void TearDown() override { UseVectorTarget(VectorTargets().front()); }
};

TEST_P(VectorTargetTest, IsTheOneThatRuns) {
  EXPECT_EQ(VectorTarget(), GetParam());
  const GoldenCase golden = LoadGoldenCase("kimi-char", at::kFloat);
  const std::string kernel = MakeNativeStep(golden, {})->identity().kernel;
  EXPECT_NE(kernel.find("-" + VectorBits() + "-"), std::string::npos) << kernel;
  EXPECT_EQ(UsesTiles(), GetParam() == "AMX");
  EXPECT_EQ(VectorBits(), UsesTiles() ? "AVX3_DL" : GetParam());
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

NativeStepOptions AllOfInt8(int32_t slots, AttentionForm form) {
  NativeStepOptions options;
  options.slots = slots;
  options.formats.form = form;
  options.formats.weights = NumberFormat::kInt8;
  options.formats.memory = NumberFormat::kInt8;
  options.formats.derived = NumberFormat::kInt8;
  options.formats.products = Products::kInteger;
  return options;
}

struct MixedTurns {
  int64_t count = 0;
  std::vector<float> logprobs;  // of the last token of each
};

// Turns of 1 to 40 ids in random company: every session goes on at random.
MixedTurns FeedMixedTurns(const GoldenCase& golden, AttentionForm form,
                          int64_t calls) {
  constexpr int32_t kSessions = 4;
  constexpr int64_t kMostIds = 40;
  auto step = MakeNativeStep(golden, AllOfInt8(kSessions, form));
  std::mt19937 random(calls);
  const std::vector<int32_t>& ids = golden.tokens;
  const auto length = static_cast<int64_t>(ids.size());
  std::vector<int64_t> positions(kSessions);
  MixedTurns turns;
  for (int64_t call = 0; call < calls; ++call) {
    std::vector<StepSegment> segments;
    std::vector<int32_t> last(kSessions);
    for (int32_t s = 0; s < kSessions; ++s) {
      if (random() % 4 == 0) continue;
      const int64_t most = random() % 2 == 0 ? 1 : std::min(kMostIds, length);
      const int64_t count = 1 + static_cast<int64_t>(random()) % most;
      const int64_t from =
          static_cast<int64_t>(random()) % (length - count + 1);
      last[s] = static_cast<int32_t>(count - 1);
      segments.push_back({s, positions[s],
                          absl::MakeSpan(ids).subspan(from, count),
                          absl::MakeConstSpan(&last[s], 1)});
      positions[s] += count;
    }
    if (segments.empty()) continue;
    for (NextTokenDistribution* row : step->Run(segments)) {
      AppendLogprobs(*row, turns.logprobs);
    }
    turns.count += static_cast<int64_t>(segments.size());
  }
  return turns;
}

// Of this machine's targets, those with AVX-512's vectors: their floats are the
// same, whatever multiplies the integers.
std::vector<std::string> TargetsOfAvx512() {
  std::vector<std::string> names;
  for (const std::string& name : VectorTargets()) {
    if (name == "AMX" || name.rfind("AVX3", 0) == 0) names.push_back(name);
  }
  return names;
}

class VectorBitsTest : public testing::TestWithParam<AttentionForm> {};

TEST_P(VectorBitsTest, OfAvx512AreTheSameInTenThousandMixedTurns) {
  constexpr int64_t kCalls = 200;
  const std::vector<std::string> targets = TargetsOfAvx512();
  int64_t turns = 0;
  for (const std::string& name : GoldenCaseNames()) {
    const GoldenCase golden = LoadGoldenCase(name, at::kFloat);
    std::vector<float> expected;
    for (const std::string& target : targets) {
      ASSERT_TRUE(UseVectorTarget(target));
      const MixedTurns fed = FeedMixedTurns(golden, GetParam(), kCalls);
      if (expected.empty()) expected = fed.logprobs;
      EXPECT_TRUE(fed.logprobs == expected) << name << " " << target;
      turns += fed.count;
    }
  }
  UseVectorTarget(VectorTargets().front());
  EXPECT_GE(turns, 10'000 * static_cast<int64_t>(targets.size()));
}

INSTANTIATE_TEST_SUITE_P(Forms, VectorBitsTest,
                         testing::Values(AttentionForm::kProjected,
                                         AttentionForm::kAbsorbed),
                         [](const testing::TestParamInfo<AttentionForm>& info) {
                           return std::string(FormName(info.param));
                         });

TEST(VectorTargets, BeginWithTheOneThatIsChosenByItself) {
  EXPECT_EQ(VectorTargets().front(), VectorTarget());
  EXPECT_FALSE(UseVectorTarget("8087"));
  EXPECT_FALSE(UseVectorTarget(kAutoVectorTarget));
  EXPECT_THAT(VectorTargets(), Contains(VectorTarget()));
}

TEST(VectorTargets, ASettingIsAutoOrOneOfThem) {
  EXPECT_TRUE(CheckVectorTarget("auto").ok());
  for (const std::string& name : VectorTargets()) {
    EXPECT_TRUE(CheckVectorTarget(name).ok()) << name;
    EXPECT_TRUE(CheckVectorTarget(absl::AsciiStrToLower(name)).ok()) << name;
  }
  const absl::Status status = CheckVectorTarget("8087");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith("vector-target: \"8087\""),
                    HasSubstr(VectorTargets().back())));
}

}  // namespace
}  // namespace txl
