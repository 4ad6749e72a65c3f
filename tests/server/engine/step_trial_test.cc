// What the self-test says of steps with one mistake in them, and of healthy
// ones: on the CPU, and on the emulated CUDA device.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/sound_step.h"
#include "tests/model/cuda/step/random_case.h"
#include "tests/model/golden_paths.h"
#include "tests/model/step/faulty_model.h"
#include "tests/model/step/faulty_step.h"
#include "tests/model/torch/golden_case.h"
#include "tests/server/engine/tried_step.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

// Clusters, biases, sinusoids and several layers and heads.
const GoldenCase& Model() {
  static const auto* const model =
      new GoldenCase(LoadGoldenCase("kimi-adaptive-div2", at::kFloat));
  return *model;
}

SelfTestLimits LimitsOf(const SamplingStep& step, const TriedLimits& limits) {
  SelfTestLimits out;
  out.slots = limits.slots;
  out.max_rows = limits.max_rows;
  out.spare = step.ring().spare;
  return out;
}

// The verdict on `step`, which ought to serve the model of these weights.
absl::Status Verdict(const ModelConfig& config, const Weights& weights,
                     const TriedFormat& format, SamplingStep& step,
                     const TriedLimits& limits = {}) {
  const auto deviation = TryBesideTorch(config, weights, format.formats, step,
                                        LimitsOf(step, limits));
  if (!deviation.ok()) return deviation.status();
  return JudgeSelfTest(*deviation,
                       SelfTestBoundsOf(format.bounds(), config.n_layer));
}

class FormatsTest : public testing::TestWithParam<TriedFormat> {};

// Memories that begin empty make no row visible that nobody has written: who
// does not clear a slot is right there.
FaultyModel HealthyModelFor(StepFault fault) {
  if (fault != StepFault::kStaleSlot) return {Model().config, Model().weights};
  const RandomCase zeros = PromiseCase();
  return {zeros.config, zeros.weights};
}

TEST_P(FormatsTest, EveryMistakeOfAStepIsFound) {
  for (const StepFault fault : AllStepFaults()) {
    const FaultyModel model = HealthyModelFor(fault);
    const auto step = MakeFaultyStep(
        MakeTriedStep(model.config, model.weights, GetParam()), fault);
    const absl::Status verdict =
        Verdict(model.config, model.weights, GetParam(), *step);
    EXPECT_EQ(verdict.code(), absl::StatusCode::kInternal) << NameOf(fault);
    EXPECT_THAT(std::string(verdict.message()), HasSubstr("session"));
    std::cout << NameOf(fault) << ": " << verdict.message() << "\n";
  }
}

TEST_P(FormatsTest, EveryMistakeInWhatAStepComputesIsFound) {
  for (const ModelFault fault : AllModelFaults()) {
    const FaultyModel wrong =
        MakeFaultyModel(Model().config, Model().weights, fault);
    const auto step = MakeTriedStep(wrong.config, wrong.weights, GetParam());
    const absl::Status verdict =
        Verdict(Model().config, Model().weights, GetParam(), *step);
    EXPECT_EQ(verdict.code(), absl::StatusCode::kInternal) << NameOf(fault);
    std::cout << NameOf(fault) << ": " << verdict.message() << "\n";
  }
}

TEST_P(FormatsTest, NoTrainedModelIsRefused) {
  for (const char* name : kGoldenCases) {
    const GoldenCase golden = LoadGoldenCase(name, at::kFloat);
    const auto step = MakeTriedStep(golden.config, golden.weights, GetParam());
    const absl::Status verdict =
        Verdict(golden.config, golden.weights, GetParam(), *step);
    EXPECT_TRUE(verdict.ok()) << name << ": " << verdict;
  }
}

// Windows, starts, norms, positions and bins of every kind. The emulator takes
// a second for a load.
#if defined(TXL_EMULATED)
constexpr uint32_t kRandomLoads = 7;
constexpr int64_t kLongMemory = 200;
#else
constexpr uint32_t kRandomLoads = 82;
constexpr int64_t kLongMemory = 1600;
#endif

TEST_P(FormatsTest, NoRandomModelIsRefused) {
  for (uint32_t seed = 0; seed < kRandomLoads; ++seed) {
    const RandomCase model = MakeRandomCase(seed);
    const auto step = MakeTriedStep(model.config, model.weights, GetParam());
    const absl::Status verdict =
        Verdict(model.config, model.weights, GetParam(), *step);
    EXPECT_TRUE(verdict.ok()) << verdict << model.Describe();
  }
}

// Of whose rows the sessions feed few.
TEST_P(FormatsTest, NoModelWithALongMemoryIsRefused) {
  for (const NormPlacement norm : {NormPlacement::kPre, NormPlacement::kPost}) {
    for (const MemoryInit start : {MemoryInit::kEmpty, MemoryInit::kZeros}) {
      ModelConfig config = PromiseCase().config;
      config.mem_len = kLongMemory;
      config.norm = norm;
      config.mem_init = start;
      const RandomCase model = CaseOf(config, 5, 1);
      const auto step = MakeTriedStep(model.config, model.weights, GetParam());
      const absl::Status verdict =
          Verdict(model.config, model.weights, GetParam(), *step);
      EXPECT_TRUE(verdict.ok()) << verdict << model.Describe();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, FormatsTest,
                         testing::ValuesIn(TriedFormats()),
                         [](const testing::TestParamInfo<TriedFormat>& info) {
                           return std::string(info.param.name);
                         });

TEST(StepTrialTest, FewSlotsAndShortStepsAreNoExcuse) {
  const TriedFormat format = TriedFormats().front();
  for (const TriedLimits limits :
       {TriedLimits{1, 1}, TriedLimits{1, 9}, TriedLimits{2, 3},
        TriedLimits{3, 64}, TriedLimits{7, 2}}) {
    const std::string where =
        absl::StrCat(limits.slots, " slots, ", limits.max_rows, " rows");
    auto step = MakeTriedStep(Model().config, Model().weights, format, limits);
    EXPECT_EQ(Verdict(Model().config, Model().weights, format, *step, limits),
              absl::OkStatus())
        << where;
    step = MakeFaultyStep(std::move(step), StepFault::kShiftedImport);
    EXPECT_FALSE(
        Verdict(Model().config, Model().weights, format, *step, limits).ok())
        << where;
  }
}

TEST(StepTrialTest, SaysWhereItDiffers) {
  const TriedFormat format = TriedFormats().front();
  const auto step =
      MakeFaultyStep(MakeTriedStep(Model().config, Model().weights, format),
                     StepFault::kNanRow);
  EXPECT_THAT(
      std::string(
          Verdict(Model().config, Model().weights, format, *step).message()),
      HasSubstr("session 1, position 11: its numbers are not finite"));
}

}  // namespace
}  // namespace txl
