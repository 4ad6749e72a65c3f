#include "server/engine/device_step_runner.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "model/reference/network.h"
#include "tests/model/torch/golden_case.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

StepRunnerOptions SmallOptions() {
  StepRunnerOptions options;
  options.slots = 3;
  options.spare_rows = 16;
  options.max_rows = 24;
  return options;
}

std::unique_ptr<StepRunner> MakeRunner(const GoldenCase& golden) {
  auto runner = CreateStepRunner(golden.config, golden.weights, golden.name,
                                 SmallOptions());
  EXPECT_TRUE(runner.ok()) << runner.status();
  return *std::move(runner);
}

SlotSampling Greedy() {
  SlotSampling sampling;
  sampling.params.temperature = 0;
  return sampling;
}

StepRow Row(int32_t slot, int64_t position, RowKind kind, int32_t token) {
  StepRow row;
  row.slot = slot;
  row.position = position;
  row.kind = kind;
  row.token_id = token;
  return row;
}

// Feeds ids[0..n-1], the last of them as a decoding row.
StepPlan PromptPlan(int32_t slot, const std::vector<int32_t>& ids) {
  StepPlan plan;
  for (size_t i = 0; i < ids.size(); ++i) {
    plan.rows.push_back(
        Row(slot, static_cast<int64_t>(i), RowKind::kPrefill, ids[i]));
  }
  plan.rows.back().kind = RowKind::kDecode;
  return plan;
}

StepPlan NextPlan(int32_t slot, int64_t position) {
  return {{Row(slot, position, RowKind::kDecode, kLastSampled)}};
}

int32_t OnlyToken(StepRunner& runner, StepId step) {
  const auto result = runner.Collect(step);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->rows.back().status.ok()) << result->rows.back().status;
  return result->rows.back().token_id;
}

// Greedy text by the paper's forward, one token per call.
std::vector<int32_t> ReferenceGreedy(const GoldenCase& golden,
                                     const std::vector<int32_t>& prompt,
                                     int count) {
  const ReferenceNetwork network(golden.config, golden.weights);
  SegmentMemory memory = network.InitialMemory(1);
  std::vector<int32_t> text;
  for (size_t i = 0; i < prompt.size() + count - 1; ++i) {
    const int32_t id = i < prompt.size() ? prompt[i] : text[i - prompt.size()];
    const at::Tensor hidden =
        network.Forward(at::full({1, 1}, id, at::kLong), memory);
    if (i + 1 < prompt.size()) continue;
    text.push_back(static_cast<int32_t>(
        network.LogProbs(hidden[0][0]).argmax().item<int64_t>()));
  }
  return text;
}

class DeviceStepRunnerTest : public testing::TestWithParam<std::string> {
 protected:
  DeviceStepRunnerTest() : golden_(LoadGoldenCase(GetParam(), at::kDouble)) {
    prompt_.assign(golden_.tokens.begin(), golden_.tokens.begin() + 11);
  }

  GoldenCase golden_;
  std::vector<int32_t> prompt_;
};

TEST_P(DeviceStepRunnerTest, GreedyTextIsThatOfTheReference) {
  constexpr int kTokens = 40;
  auto runner = MakeRunner(golden_);
  runner->Clear(1);
  runner->Configure(1, Greedy());
  std::vector<int32_t> text = {
      OnlyToken(*runner, runner->Submit(PromptPlan(1, prompt_)))};
  for (int64_t position = 11; text.size() < kTokens; ++position) {
    text.push_back(OnlyToken(*runner, runner->Submit(NextPlan(1, position))));
  }
  EXPECT_EQ(text, ReferenceGreedy(golden_, prompt_, kTokens));
}

TEST_P(DeviceStepRunnerTest, TwoStepsInFlightGiveTheSameText) {
  constexpr int kTokens = 30;
  auto runner = MakeRunner(golden_);
  ASSERT_EQ(runner->info().depth, 2);
  runner->Clear(0);
  runner->Configure(0, Greedy());
  std::vector<int32_t> text;
  StepId older = runner->Submit(PromptPlan(0, prompt_));
  for (int64_t position = 11; text.size() + 1 < kTokens; ++position) {
    const StepId newer = runner->Submit(NextPlan(0, position));
    text.push_back(OnlyToken(*runner, older));
    older = newer;
  }
  text.push_back(OnlyToken(*runner, older));
  EXPECT_EQ(text, ReferenceGreedy(golden_, prompt_, kTokens));
}

TEST_P(DeviceStepRunnerTest, ScoresAreTheOriginalsLogProbabilities) {
  auto runner = MakeRunner(golden_);
  runner->Clear(2);
  const std::vector<int32_t>& ids = golden_.tokens;
  for (size_t begin = 0; begin + 1 < ids.size(); begin += 16) {
    StepPlan plan;
    const size_t end = std::min(begin + 16, ids.size() - 1);
    for (size_t t = begin; t < end; ++t) {
      StepRow row = Row(2, static_cast<int64_t>(t), RowKind::kScore, ids[t]);
      row.score_target = ids[t + 1];
      row.top_logprobs = 3;
      plan.rows.push_back(row);
    }
    const auto result = runner->Collect(runner->Submit(plan));
    ASSERT_TRUE(result.ok()) << result.status();
    for (size_t t = begin; t < end; ++t) {
      const RowResult& row = result->rows[t - begin];
      const at::Tensor expected = golden_.stepwise[t];
      EXPECT_EQ(row.token_id, ids[t + 1]);
      EXPECT_NEAR(row.logprob, expected[ids[t + 1]].item<double>(), 1e-5);
      ASSERT_EQ(row.top_logprobs.size(), 3);
      EXPECT_EQ(row.top_logprobs[0].token_id,
                expected.argmax().item<int64_t>());
      EXPECT_NEAR(row.top_logprobs[0].logprob, expected.max().item<double>(),
                  1e-5);
    }
  }
}

TEST_P(DeviceStepRunnerTest, CallsTakeEffectInTheirOrder) {
  auto runner = MakeRunner(golden_);
  const std::vector<int32_t> expected = ReferenceGreedy(golden_, prompt_, 2);
  runner->Configure(0, Greedy());
  runner->Configure(1, Greedy());
  // Slot 0 is fed, copied while it holds the prompt, then cleared and fed
  // otherwise; nothing is waited for between.
  runner->Clear(0);
  const StepId first = runner->Submit(PromptPlan(0, prompt_));
  auto image = runner->Export(0, 11);
  runner->Copy(0, 1);
  runner->Clear(0);
  const StepId second =
      runner->Submit({{Row(0, 0, RowKind::kPrefill, prompt_[3]),
                       Row(1, 11, RowKind::kDecode, expected[0])}});
  EXPECT_EQ(OnlyToken(*runner, first), expected[0]);
  EXPECT_EQ(OnlyToken(*runner, second), expected[1]);
  auto exported = image.get();
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->position, 11);
  auto imported = runner->Import(2, *std::move(exported));
  runner->Configure(2, Greedy());
  const StepId third =
      runner->Submit({{Row(2, 11, RowKind::kDecode, expected[0])}});
  EXPECT_EQ(OnlyToken(*runner, third), expected[1]);
  EXPECT_TRUE(imported.get().ok());
}

INSTANTIATE_TEST_SUITE_P(Models, DeviceStepRunnerTest,
                         testing::Values("kimi-char", "hf-adaptive",
                                         "labml-char"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(DeviceStepRunnerErrorTest, StepsAreCollectedInOrderAndOnce) {
  auto runner = MakeRunner(LoadGoldenCase("sorter", at::kFloat));
  EXPECT_FALSE(runner->Collect(0).ok());
  runner->Clear(0);
  const StepId first = runner->Submit({{Row(0, 0, RowKind::kPrefill, 1)}});
  const StepId second = runner->Submit({{Row(0, 1, RowKind::kPrefill, 2)}});
  EXPECT_EQ(runner->Collect(second).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(runner->Collect(first).ok());
  EXPECT_FALSE(runner->Collect(first).ok());
  EXPECT_TRUE(runner->Collect(second).ok());
}

TEST(DeviceStepRunnerErrorTest, UncollectedWorkDoesNotBlockTheEnd) {
  std::future<absl::StatusOr<StateImage>> image;
  {
    auto runner = MakeRunner(LoadGoldenCase("sorter", at::kFloat));
    runner->Clear(0);
    runner->Submit({{Row(0, 0, RowKind::kPrefill, 1)}});
    image = runner->Export(0, 1);
  }
  EXPECT_TRUE(image.get().ok());
}

TEST(DeviceStepRunnerCreateTest, InfoSaysWhatWasBuilt) {
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
TEST(DeviceStepRunnerCreateTest, Float32OnTheCpuRunsNatively) {
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
TEST(DeviceStepRunnerCreateTest, AnImportedStateGoesOnHoweverItIsDerived) {
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
    ASSERT_TRUE(runner->Import(1, image).get().ok());
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

TEST(DeviceStepRunnerCreateTest, TheAbsorbedFormKeepsTheRowsAlone) {
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

TEST(DeviceStepRunnerCreateTest, Float64RunsOnLibTorch) {
  const GoldenCase golden = LoadGoldenCase("thu", at::kDouble);
  EXPECT_EQ(MakeRunner(golden)->info().form, "absorbed");
  StepRunnerOptions options = SmallOptions();
  options.step = "native";
  EXPECT_EQ(CreateStepRunner(golden.config, golden.weights, "thu", options)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(DeviceStepRunnerCreateTest, AByteBudgetIsFilledWithSlots) {
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
  EXPECT_THAT(runner.status().message(), HasSubstr("slot_bytes"));
}

TEST(DeviceStepRunnerCreateTest, NamesTheOptionThatIsWrong) {
  const GoldenCase golden = LoadGoldenCase("thu", at::kFloat);
  const auto message = [&](const StepRunnerOptions& options) {
    const auto runner =
        CreateStepRunner(golden.config, golden.weights, "", options);
    EXPECT_EQ(runner.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(runner.status().message());
  };
  StepRunnerOptions options = SmallOptions();
  options.slots = -1;
  EXPECT_THAT(message(options), HasSubstr("slots"));
  options.slots = 0;
  options.slot_bytes = -1;
  EXPECT_THAT(message(options), HasSubstr("slot_bytes"));
  options = SmallOptions();
  options.spare_rows = 7;
  EXPECT_THAT(message(options), HasSubstr("spare_rows"));
  options = SmallOptions();
  options.max_rows = 0;
  EXPECT_THAT(message(options), HasSubstr("max_rows"));
  options = SmallOptions();
  options.threads = 0;
  EXPECT_THAT(message(options), HasSubstr("threads"));
  options = SmallOptions();
  options.step = "fast";
  EXPECT_THAT(message(options), HasSubstr("step: \"fast\""));
  options = SmallOptions();
  options.form = "folded";
  EXPECT_THAT(message(options), HasSubstr("form: \"folded\""));
  options.step = "torch";
  options.form = "projected";
  EXPECT_THAT(message(options), HasSubstr("form"));
  options = SmallOptions();
  options.weights = "int4";
  EXPECT_THAT(message(options), HasSubstr("weights: \"int4\""));
  options = SmallOptions();
  options.memory = "int8";
  EXPECT_THAT(message(options), HasSubstr("memory: \"int8\""));
  options = SmallOptions();
  options.step = "torch";
  options.derived = "f16";
  EXPECT_THAT(message(options), HasSubstr("derived"));
}

}  // namespace
}  // namespace txl
