// The runner on steps that the host samples: models that throw, that overflow,
// and which clusters their rows evaluate.

#include <ATen/core/Tensor.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "model/cpu/native_step.h"
#include "model/step/model_step.h"
#include "model/step/sampling_on_host.h"
#include "model/torch/torch_step.h"
#include "server/engine/sampling_step_runner.h"
#include "tests/model/torch/golden_case.h"
#include "tests/server/engine/test_runners.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr int32_t kHostSlots = 3;

// Ids below 50 are in bin 0 of this model, those from 50 to 89 in bin 1.
constexpr char kModel[] = "kimi-adaptive-div2";
constexpr int32_t kFirstBinOneId = 60;

std::unique_ptr<StepRunner> MakeHostRunner(const GoldenCase& golden,
                                           std::unique_ptr<ModelStep> step) {
  RunnerInfo info;
  info.slots = kHostSlots;
  info.spare_rows = 8;
  info.max_rows = 16;
  info.depth = 2;
  info.vocab_size = golden.config.vocab_size;
  auto runner = MakeSamplingStepRunner(
      info, SampleOnHost(std::move(step), BinsOf(golden.config), kHostSlots));
  for (int32_t slot = 0; slot < kHostSlots; ++slot) {
    runner->Clear(slot);
    runner->Configure(slot, Greedy());
  }
  return runner;
}

std::unique_ptr<StepRunner> MakeHostRunner(const GoldenCase& golden) {
  TorchStepOptions options = {
      .slots = kHostSlots, .spare_rows = 8, .fingerprint = golden.name};
  auto step = TorchStep::Create(golden.config, golden.weights, options);
  EXPECT_TRUE(step.ok());
  return MakeHostRunner(golden, *std::move(step));
}

std::unique_ptr<StepRunner> MakeLazyRunner(const GoldenCase& golden) {
  NativeStepOptions options;
  options.slots = kHostSlots;
  options.spare_rows = 8;
  auto step = CreateNativeStep(golden.config, golden.weights, options);
  EXPECT_TRUE(step.ok());
  return MakeHostRunner(golden, *std::move(step));
}

GoldenCase Model() { return LoadGoldenCase(kModel, at::kFloat); }

// A model that throws on ids of bin 1: their projection has a wrong shape.
GoldenCase ModelThatThrows() {
  GoldenCase golden = Model();
  golden.weights.embedding[1].proj = at::zeros({3, 3});
  return golden;
}

// A model whose numbers overflow on ids of bin 1.
GoldenCase ModelThatOverflows() {
  GoldenCase golden = Model();
  golden.weights.embedding[1].w = at::full_like(
      golden.weights.embedding[1].w, std::numeric_limits<float>::max());
  return golden;
}

// Feeds `first` at position 0, then what was sampled, `count` tokens in all.
std::vector<int32_t> Generate(StepRunner& runner, int32_t slot, int32_t first,
                              int count) {
  std::vector<int32_t> tokens;
  for (int64_t position = 0; position < count; ++position) {
    const auto result = RunPlan(
        runner,
        {{Decode(slot, position, position == 0 ? first : kLastSampled)}});
    EXPECT_TRUE(result.ok()) << result.status();
    tokens.push_back(result->rows[0].token_id);
  }
  return tokens;
}

// What step_runner.h shows.
TEST(HostStepRunnerTest, AStepFeedsWhatTheOneBeforeItSampled) {
  const auto runner = MakeHostRunner(Model());
  const StepId first = runner->Submit(
      {{{0, 0, RowKind::kPrefill, 4}, {0, 1, RowKind::kDecode, 8}}});
  const StepId second =
      runner->Submit({{{0, 2, RowKind::kDecode, kLastSampled}}});
  const int32_t token = runner->Collect(first)->rows[1].token_id;
  const int32_t next = runner->Collect(second)->rows[0].token_id;
  EXPECT_TRUE(runner->Export(0, 3).get().ok());

  const StepId known = runner->Submit({{{1, 0, RowKind::kPrefill, 4},
                                        {1, 1, RowKind::kPrefill, 8},
                                        {1, 2, RowKind::kDecode, token}}});
  EXPECT_EQ(runner->Collect(known)->rows[2].token_id, next);
}

TEST(HostStepRunnerTest, AFailedStepLeavesEverySlotAsItWas) {
  auto plain = MakeHostRunner(Model());
  auto runner = MakeHostRunner(ModelThatThrows());
  const auto expected = RunPlan(*plain, {{Decode(0, 0, 1), Decode(1, 0, 2)}});
  ASSERT_TRUE(expected.ok());
  ASSERT_TRUE(RunPlan(*runner, {{Decode(0, 0, 1), Decode(1, 0, 2)}}).ok());
  const auto failed =
      RunPlan(*runner, {{Decode(0, 1, 3), Decode(1, 1, kFirstBinOneId)}});
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(failed.status().message(), HasSubstr("step"));
  // The same positions again, with other ids.
  const StepPlan again = {{Decode(0, 1, 4), Decode(1, 1, 5)}};
  const auto after = RunPlan(*runner, again);
  const auto without = RunPlan(*plain, again);
  ASSERT_TRUE(after.ok()) << after.status();
  for (size_t row = 0; row < 2; ++row) {
    EXPECT_EQ(after->rows[row].token_id, without->rows[row].token_id);
    EXPECT_EQ(after->rows[row].logprob, without->rows[row].logprob);
  }
}

TEST(HostStepRunnerTest, TheTokenOfAFailedStepIsUnknown) {
  auto runner = MakeHostRunner(ModelThatThrows());
  ASSERT_TRUE(RunPlan(*runner, {{Decode(0, 0, 1), Decode(1, 0, 1)}}).ok());
  ASSERT_FALSE(RunPlan(*runner, {{Decode(0, 1, kFirstBinOneId)}}).ok());
  const auto next = RunPlan(
      *runner, {{Decode(0, 2, kLastSampled), Decode(1, 1, kLastSampled)}});
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(next->rows[0].status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(next->rows[0].status.message(), HasSubstr("unknown"));
  EXPECT_TRUE(next->rows[1].status.ok());
}

TEST(HostStepRunnerTest, ARowThatIsNotFiniteFailsAlone) {
  auto alone = MakeHostRunner(ModelThatOverflows());
  auto runner = MakeHostRunner(ModelThatOverflows());
  const auto expected = RunPlan(*alone, {{Decode(2, 0, 7)}});
  const auto result =
      RunPlan(*runner, {{Decode(0, 0, kFirstBinOneId), Decode(2, 0, 7)}});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->rows[0].status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(result->rows[0].status.message(), HasSubstr("not finite"));
  EXPECT_TRUE(result->rows[1].status.ok());
  EXPECT_EQ(result->rows[1].token_id, expected->rows[0].token_id);
  EXPECT_EQ(result->rows[1].logprob, expected->rows[0].logprob);
  // The slot is good again once it is cleared.
  runner->Clear(0);
  EXPECT_EQ(RunPlan(*runner, {{Decode(0, 0, 7)}})->rows[0].logprob,
            expected->rows[0].logprob);
}

TEST(HostStepRunnerTest, APlanThatBreaksTheRulesChangesNothing) {
  auto runner = MakeHostRunner(Model());
  ASSERT_TRUE(RunPlan(*runner, {{Decode(0, 0, 1)}}).ok());
  const auto broken =
      RunPlan(*runner, {{Decode(0, 1, kLastSampled), Decode(9, 0, 1)}});
  EXPECT_EQ(broken.status().code(), absl::StatusCode::kInvalidArgument);
  const auto next = RunPlan(*runner, {{Decode(0, 1, kLastSampled)}});
  ASSERT_TRUE(next.ok());
  EXPECT_TRUE(next->rows[0].status.ok());
}

TEST(HostStepRunnerTest, ACopyHasTheRowsAndItsOwnSampling) {
  auto runner = MakeHostRunner(Model());
  const std::vector<int32_t> tokens = Generate(*runner, 0, 3, 6);
  runner->Copy(0, 1);
  const auto original = RunPlan(*runner, {{Decode(0, 6, tokens.back())}});
  const auto copy = RunPlan(*runner, {{Decode(1, 6, tokens.back())}});
  EXPECT_EQ(copy->rows[0].token_id, original->rows[0].token_id);
  EXPECT_EQ(copy->rows[0].logprob, original->rows[0].logprob);
  runner->Copy(0, 2);
  const auto unknown = RunPlan(*runner, {{Decode(2, 7, kLastSampled)}});
  ASSERT_TRUE(unknown.ok());
  EXPECT_FALSE(unknown->rows[0].status.ok());
}

TEST(HostStepRunnerTest, AnImportedStateContinuesAsTheOriginal) {
  auto runner = MakeHostRunner(Model());
  const std::vector<int32_t> tokens = Generate(*runner, 0, 3, 6);
  const auto image = runner->Export(0, 6).get();
  ASSERT_TRUE(image.ok());
  Generate(*runner, 2, 9, 4);  // something to replace
  ASSERT_TRUE(runner->Import(2, Shared(*image)).get().ok());
  const auto original = RunPlan(*runner, {{Decode(0, 6, tokens.back())}});
  const auto moved = RunPlan(*runner, {{Decode(2, 6, tokens.back())}});
  EXPECT_EQ(moved->rows[0].token_id, original->rows[0].token_id);
  EXPECT_EQ(moved->rows[0].logprob, original->rows[0].logprob);
}

TEST(HostStepRunnerTest, ARefusedImageLeavesTheSlotRunning) {
  auto runner = MakeHostRunner(Model());
  Generate(*runner, 0, 3, 4);
  auto image = runner->Export(0, 4).get();
  ASSERT_TRUE(image.ok());
  image->identity.fingerprint = "another";
  image->Seal();
  EXPECT_EQ(runner->Import(0, Shared(*image)).get().code(),
            absl::StatusCode::kInvalidArgument);
  const auto next = RunPlan(*runner, {{Decode(0, 4, kLastSampled)}});
  ASSERT_TRUE(next.ok());
  EXPECT_TRUE(next->rows[0].status.ok());
}

TEST(HostStepRunnerTest, SlotsAndPositionsThatDoNotExistAreRefused) {
  auto runner = MakeHostRunner(Model());
  EXPECT_EQ(runner->Export(kHostSlots, 0).get().status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(runner->Export(0, -1).get().status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(runner->Import(-1, Shared(StateImage())).get().code(),
            absl::StatusCode::kInvalidArgument);
}

// Of the model's three clusters: how many rows computed each, skipped each.
std::vector<std::pair<int64_t, int64_t>> Tails(
    const absl::StatusOr<StepResult>& result) {
  std::vector<std::pair<int64_t, int64_t>> tails;
  EXPECT_TRUE(result.ok()) << result.status();
  for (const SoftmaxTail& tail : result->softmax_tails) {
    tails.emplace_back(tail.computed, tail.skipped);
  }
  return tails;
}

StepRow Score(int32_t slot, int64_t position, int32_t target) {
  return txl::Score(slot, position, 3, target);
}

TEST(HostStepRunnerTest, AScoreComputesTheClusterOfItsTargetOnly) {
  auto runner = MakeLazyRunner(Model());
  // Targets in bin 0, cluster 0, cluster 0, cluster 2.
  const StepPlan plan = {
      {Score(0, 0, 7), Score(0, 1, 60), Score(1, 0, 89), Score(2, 0, 150)}};
  EXPECT_THAT(Tails(RunPlan(*runner, plan)),
              ElementsAre(Pair(2, 2), Pair(0, 4), Pair(1, 3)));
}

TEST(HostStepRunnerTest,
     AlternativesOutOfTheWholeVocabularyComputeAllClusters) {
  const GoldenCase model = Model();
  auto runner = MakeLazyRunner(model);
  StepRow row = Score(0, 0, 7);
  row.top_logprobs = static_cast<int32_t>(model.config.vocab_size);
  EXPECT_THAT(Tails(RunPlan(*runner, {{row, Score(1, 0, 7)}})),
              ElementsAre(Pair(1, 1), Pair(1, 1), Pair(1, 1)));
}

TEST(HostStepRunnerTest, AStepThatEvaluatesEverythingSkipsNothing) {
  auto runner = MakeHostRunner(Model());
  StepRow prefill = Decode(2, 0, 3);
  prefill.kind = RowKind::kPrefill;
  EXPECT_THAT(
      Tails(RunPlan(*runner, {{Decode(0, 0, 1), Score(1, 0, 7), prefill}})),
      ElementsAre(Pair(2, 0), Pair(2, 0), Pair(2, 0)));
}

TEST(HostStepRunnerTest, RowsThatDidNotRunHaveNoTails) {
  auto runner = MakeLazyRunner(Model());
  // Nothing was sampled in slot 0: its row fails before the step.
  const auto result =
      RunPlan(*runner, {{Decode(0, 1, kLastSampled), Score(1, 0, 7)}});
  EXPECT_THAT(Tails(result), ElementsAre(Pair(0, 1), Pair(0, 1), Pair(0, 1)));
  EXPECT_FALSE(result->rows[0].status.ok());
  EXPECT_THAT(Tails(RunPlan(*runner, {{Decode(0, 1, kLastSampled)}})),
              IsEmpty());
}

TEST(HostStepRunnerTest, RowsWithoutOutputReportOnlyTheirStatus) {
  auto runner = MakeHostRunner(Model());
  StepRow prefill = Decode(0, 0, 3);
  prefill.kind = RowKind::kPrefill;
  StepRow rebuild = Decode(1, 0, 3);
  rebuild.kind = RowKind::kRebuild;
  const auto result = RunPlan(*runner, {{prefill, rebuild}});
  ASSERT_TRUE(result.ok());
  for (const RowResult& row : result->rows) {
    EXPECT_TRUE(row.status.ok());
    EXPECT_EQ(row.token_id, -1);
    EXPECT_TRUE(row.top_logprobs.empty());
  }
  EXPECT_GE(result->device_seconds, 0);
}

}  // namespace
}  // namespace txl
