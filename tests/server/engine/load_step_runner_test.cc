// Which runner comes of which options.

#include "server/engine/load_step_runner.h"

#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "model/checkpoint/model_directory.h"
#include "model/cpu/vector_target.h"
#include "tests/model/golden_paths.h"
#include "tests/model/torch/golden_case.h"
#include "tests/server/engine/test_runners.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<StepRunner> MakeRunner(const GoldenCase& golden) {
  auto runner = CreateStepRunner(golden.config, golden.weights, golden.name,
                                 SmallOptions());
  EXPECT_TRUE(runner.ok()) << runner.status();
  return *std::move(runner);
}

TEST(LoadStepRunnerTest, InfoSaysWhatWasBuilt) {
  const GoldenCase golden = LoadGoldenCase("thu", at::kFloat);
  StepRunnerOptions options = SmallOptions();
  options.step = "torch";
  auto runner = CreateStepRunner(golden.config, golden.weights, "thu", options);
  ASSERT_TRUE(runner.ok()) << runner.status();
  const RunnerInfo& info = (*runner)->info();
  EXPECT_EQ(info.slots, 3);
  EXPECT_EQ(info.spare_rows, 16);
  EXPECT_EQ(info.max_rows, 24);
  EXPECT_EQ(info.vocab_size, 136);
  EXPECT_EQ(info.mem_len, 19);
  EXPECT_EQ(info.window, 12);
  EXPECT_EQ(info.bytes_per_slot, 3 * (19 + 16) * 24 * 4);
  EXPECT_EQ(info.identity.fingerprint, "thu");
  EXPECT_EQ(info.device, "cpu");
  EXPECT_EQ(info.form, "absorbed");
  EXPECT_EQ(info.weight_dtype, "f32");
}

// Rings of the native step are whole panels of 64 positions: 19 + 16 -> 64. In
// projected form a slot holds rows of 24, padded to 32, and, for 3 heads of 8,
// keys of 8 and values of 16; in absorbed form the rows alone.
TEST(LoadStepRunnerTest, Float32OnTheCpuRunsNatively) {
  const GoldenCase golden = LoadGoldenCase("thu", at::kFloat);
  StepRunnerOptions options = SmallOptions();
  options.form = "projected";
  auto runner = CreateStepRunner(golden.config, golden.weights, "thu", options);
  ASSERT_TRUE(runner.ok()) << runner.status();
  const RunnerInfo& info = (*runner)->info();
  EXPECT_EQ(info.form, "projected");
  EXPECT_EQ(info.spare_rows, 64 - 19);
  EXPECT_EQ(info.bytes_per_slot, 3 * 64 * (32 + 3 * 8 + 3 * 16) * 4);
  EXPECT_THAT(info.identity.kernel, HasSubstr("native-cpu-projected"));
  EXPECT_TRUE(info.derives);
  EXPECT_EQ(info.rebuild_ids, 19 + (3 - 1) * (12 - 1) + 1);
}

// With kDerive rows before the first step, with some of them, and without any.
TEST(LoadStepRunnerTest, AnImportedStateGoesOnHoweverItIsDerived) {
  const GoldenCase golden = LoadGoldenCase("kimi-char", at::kFloat);
  auto runner = MakeRunner(golden);
  ASSERT_TRUE(runner->info().derives);
  for (int32_t slot : {0, 1}) runner->Configure(slot, Greedy());
  runner->Clear(0);
  const std::vector<int32_t> prompt(golden.tokens.begin(),
                                    golden.tokens.begin() + 15);
  OnlyToken(*runner, runner->Submit(PromptPlan(0, prompt)));
  const StateImage image = runner->Export(0, 15).get().value();
  const StepRow next = Row(0, 15, RowKind::kDecode, 3);
  const auto kept = runner->Collect(runner->Submit({{next}}));
  ASSERT_TRUE(kept.ok()) << kept.status();
  for (const size_t derived : {size_t{15}, size_t{4}, size_t{0}}) {
    ASSERT_TRUE(runner->Import(1, Shared(image)).get().ok());
    if (derived > 0) {
      const StepRow derive = Row(1, 0, RowKind::kDerive, 0);
      const auto result = runner->Collect(
          runner->Submit({std::vector<StepRow>(derived, derive)}));
      ASSERT_TRUE(result.ok()) << result.status();
      for (const RowResult& row : result->rows) EXPECT_TRUE(row.status.ok());
    }
    StepRow moved = next;
    moved.slot = 1;
    const auto result = runner->Collect(runner->Submit({{moved}}));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->rows[0].token_id, kept->rows[0].token_id);
    EXPECT_EQ(result->rows[0].logprob, kept->rows[0].logprob) << derived;
  }
}

TEST(LoadStepRunnerTest, TheAbsorbedFormKeepsTheRowsAlone) {
  const GoldenCase golden = LoadGoldenCase("thu", at::kFloat);
  EXPECT_EQ(MakeRunner(golden)->info().form, "projected") << "a small model";
  StepRunnerOptions options = SmallOptions();
  options.form = "absorbed";
  auto runner = CreateStepRunner(golden.config, golden.weights, "thu", options);
  ASSERT_TRUE(runner.ok()) << runner.status();
  const RunnerInfo& info = (*runner)->info();
  EXPECT_EQ(info.form, "absorbed");
  EXPECT_EQ(info.bytes_per_slot, 3 * 64 * 32 * 4);
  EXPECT_THAT(info.identity.kernel, HasSubstr("native-cpu-absorbed"));
  EXPECT_FALSE(info.derives);
}

TEST(LoadStepRunnerTest, Float64RunsOnLibTorch) {
  const GoldenCase golden = LoadGoldenCase("thu", at::kDouble);
  EXPECT_EQ(MakeRunner(golden)->info().form, "absorbed");
  StepRunnerOptions options = SmallOptions();
  options.step = "native";
  EXPECT_EQ(CreateStepRunner(golden.config, golden.weights, "thu", options)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(LoadStepRunnerTest, TheSelfTestSaysWhatItFound) {
  const GoldenCase golden = LoadGoldenCase("thu", at::kFloat);
  StepRunnerOptions options = SmallOptions();
  const auto result = [&] {
    SelfTestReport report;
    const auto runner = CreateStepRunner(golden.config, golden.weights, "thu",
                                         options, &report);
    EXPECT_TRUE(runner.ok()) << runner.status();
    return report.result;
  };
  EXPECT_EQ(result(), SelfTestResult::kPassed);
  options.weights = "int8";
  options.memory = options.derived = "f16";
  EXPECT_EQ(result(), SelfTestResult::kPassed);
  options.weights = "int4";
  options.products = "int8";
  EXPECT_EQ(result(), SelfTestResult::kPassed);
  options.step = "native";
  EXPECT_EQ(result(), SelfTestResult::kNotRun);
  options = SmallOptions();
  options.step = "torch";
  EXPECT_EQ(result(), SelfTestResult::kNotRun);
}

// Weights that a step cannot serve in its format: of f16 they are infinite.
TEST(LoadStepRunnerTest, AStepThatDiffersDoesNotServe) {
  GoldenCase golden = LoadGoldenCase("thu", at::kFloat);
  LayerWeights& layer = golden.weights.layers.back();
  layer.ff_w1 = layer.ff_w1.clone();
  layer.ff_w1.view({-1})[3].fill_(1e6);
  StepRunnerOptions options = SmallOptions();
  SelfTestReport report;
  EXPECT_TRUE(
      CreateStepRunner(golden.config, golden.weights, "thu", options, &report)
          .ok());
  EXPECT_EQ(report.result, SelfTestResult::kPassed) << report.objection;
  options.weights = "f16";
  const std::string target = VectorTarget();
  const auto runner =
      CreateStepRunner(golden.config, golden.weights, "thu", options, &report);
  EXPECT_EQ(runner.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(runner.status().message(),
              HasSubstr("self-test: the step differs"));
  EXPECT_TRUE(UseVectorTarget(target));
}

TEST(LoadStepRunnerTest, AByteBudgetIsFilledWithSlots) {
  const GoldenCase golden = LoadGoldenCase("thu", at::kFloat);
  StepRunnerOptions options = SmallOptions();
  options.step = "torch";
  options.slots = 0;
  options.slot_bytes = 3 * (19 + 16) * 24 * 4 * 7 + 5;
  auto runner = CreateStepRunner(golden.config, golden.weights, "thu", options);
  ASSERT_TRUE(runner.ok());
  EXPECT_EQ((*runner)->info().slots, 7);
  options.slot_bytes = 100;
  runner = CreateStepRunner(golden.config, golden.weights, "thu", options);
  EXPECT_EQ(runner.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(runner.status().message(), HasSubstr("slot memory"));
}

TEST(LoadStepRunnerTest, RunsWithTheVectorTargetThatIsNamed) {
  const GoldenCase golden = LoadGoldenCase("thu", at::kFloat);
  const std::string best = VectorTarget();
  StepRunnerOptions options = SmallOptions();
  options.vector_target = VectorTargets().back();
  const auto runner =
      CreateStepRunner(golden.config, golden.weights, "thu", options);
  ASSERT_TRUE(runner.ok()) << runner.status();
  EXPECT_EQ(VectorTarget(), options.vector_target);
  EXPECT_THAT((*runner)->info().identity.kernel,
              HasSubstr("-" + options.vector_target + "-"));
  EXPECT_TRUE(UseVectorTarget(best));
}

TEST(LoadStepRunnerTest, ADirectoryGetsItsFingerprintWhileItIsLoaded) {
  auto directory = ReadModelDirectory(GoldenDirectory("thu"));
  ASSERT_TRUE(directory.ok()) << directory.status();
  const auto runner = LoadStepRunner(*directory, SmallOptions());
  ASSERT_TRUE(runner.ok()) << runner.status();
  const std::string whole =
      OpenModelDirectory(GoldenDirectory("thu"))->fingerprint;
  EXPECT_EQ(directory->fingerprint, whole);
  EXPECT_EQ((*runner)->info().identity.fingerprint, whole);
}

TEST(LoadStepRunnerTest, NamesTheOptionThatIsWrong) {
  const GoldenCase golden = LoadGoldenCase("thu", at::kFloat);
  const auto message = [&](auto change) {
    StepRunnerOptions options = SmallOptions();
    change(options);
    const auto runner =
        CreateStepRunner(golden.config, golden.weights, "", options);
    EXPECT_EQ(runner.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(runner.status().message());
  };
  EXPECT_THAT(message([](auto& o) { o.slots = -1; }), HasSubstr("slots"));
  EXPECT_THAT(message([](auto& o) { o.slots = 0, o.slot_bytes = -1; }),
              HasSubstr("slot memory"));
  EXPECT_THAT(message([](auto& o) { o.spare_rows = 7; }),
              HasSubstr("spare_rows"));
  EXPECT_THAT(message([](auto& o) { o.max_rows = 0; }), HasSubstr("max_rows"));
  EXPECT_THAT(message([](auto& o) { o.threads = 0; }), HasSubstr("threads"));
  EXPECT_THAT(message([](auto& o) { o.step = "fast"; }),
              HasSubstr("step: \"fast\""));
  EXPECT_THAT(message([](auto& o) { o.form = "folded"; }),
              HasSubstr("form: \"folded\""));
  EXPECT_THAT(message([](auto& o) { o.step = "torch", o.form = "projected"; }),
              HasSubstr("form"));
  EXPECT_THAT(message([](auto& o) { o.weights = "int3"; }),
              HasSubstr("weights: \"int3\""));
  EXPECT_THAT(message([](auto& o) { o.memory = "q8"; }),
              HasSubstr("memory: \"q8\""));
  EXPECT_THAT(message([](auto& o) { o.products = "int16"; }),
              HasSubstr("products: \"int16\""));
  EXPECT_THAT(message([](auto& o) { o.products = "int8"; }),
              HasSubstr("products: int8 needs weights"));
  EXPECT_THAT(message([](auto& o) { o.step = "torch", o.derived = "f16"; }),
              HasSubstr("derived"));
  EXPECT_THAT(message([](auto& o) { o.step = "torch", o.products = "int8"; }),
              HasSubstr("products"));
  EXPECT_THAT(message([](auto& o) { o.vector_target = "8087"; }),
              HasSubstr("vector-target: \"8087\""));
}

}  // namespace
}  // namespace txl
