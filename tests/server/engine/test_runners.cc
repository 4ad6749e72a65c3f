#include "tests/server/engine/test_runners.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>

#include "model/step/model_step.h"
#include "server/engine/load_step_runner.h"
#include "server/engine/sampling_step_runner.h"
#include "server/engine/step_builder.h"

namespace txl {
namespace {

// Larger than models' vocabularies: tests may ban every id.
constexpr int64_t kMostBanned = 1000;

TestRunner MakeSampling(const GoldenCase& golden,
                        const StepRunnerOptions& options) {
  auto built = BuildStep(golden.config, golden.weights, golden.name, options);
  if (!built.ok()) throw std::runtime_error(built.status().ToString());
  RunnerInfo info;
  info.slots = built->slots;
  info.imports_aside = true;
  info.most_top_logprobs = SamplingStep::kMostTopLogprobs;
  info.spare_rows = built->step->ring().spare;
  info.max_rows = options.max_rows;
  info.depth = SamplingStep::kDepth;
  info.bytes_per_slot = built->step->BytesPerSlot();
  info.vocab_size = golden.config.vocab_size;
  info.mem_len = golden.config.mem_len;
  info.window = built->step->ring().window;
  info.rebuild_ids = golden.config.mem_len +
                     (golden.config.n_layer - 1) * (info.window - 1) + 1;
  info.identity = built->step->identity();
  HostSamplingOptions host;
  host.slots = built->slots;
  host.most_banned = kMostBanned;
  host.kinds = options.kinds;
  TestRunner made;
  made.control = std::make_shared<StepControl>();
  made.runner = MakeSamplingStepRunner(
      info,
      std::make_unique<HostSamplingStep>(
          std::move(built->step), BinsOf(golden.config), host, made.control));
  return made;
}

}  // namespace

std::string NameOf(RunnerKind kind) {
  switch (kind) {
    case RunnerKind::kTorch:
      return "torch";
    case RunnerKind::kNative:
      return "native";
    case RunnerKind::kSampling:
      break;
  }
  return "sampling";
}

StepRunnerOptions SmallOptions() {
  return {.slots = 3, .spare_rows = 16, .max_rows = 24};
}

GoldenCase LoadModel(RunnerKind kind, const std::string& name) {
  return LoadGoldenCase(name,
                        kind == RunnerKind::kTorch ? at::kDouble : at::kFloat);
}

TestRunner MakeTestRunner(RunnerKind kind, const GoldenCase& golden,
                          const StepRunnerOptions& options) {
  StepRunnerOptions chosen = options;
  chosen.step = kind == RunnerKind::kTorch ? "torch" : "native";
  // Without kDerive rows, which are no part of what all runners do.
  chosen.form = "absorbed";
  if (kind == RunnerKind::kSampling) return MakeSampling(golden, chosen);
  auto runner =
      CreateStepRunner(golden.config, golden.weights, golden.name, chosen);
  if (!runner.ok()) throw std::runtime_error(runner.status().ToString());
  return {*std::move(runner), nullptr};
}

SlotSampling Greedy() {
  SlotSampling sampling;
  sampling.params.temperature = 0;
  return sampling;
}

StepRow Row(int32_t slot, int64_t position, RowKind kind, int32_t token) {
  return {.slot = slot, .position = position, .kind = kind, .token_id = token};
}

StepRow Score(int32_t slot, int64_t position, int32_t token, int32_t target) {
  StepRow row = Row(slot, position, RowKind::kScore, token);
  row.score_target = target;
  return row;
}

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
  return {{Decode(slot, position, kLastSampled)}};
}

int32_t OnlyToken(StepRunner& runner, StepId step) {
  const auto result = runner.Collect(step);
  if (!result.ok()) {
    ADD_FAILURE() << result.status();
    return -1;
  }
  EXPECT_TRUE(result->rows.back().status.ok()) << result->rows.back().status;
  return result->rows.back().token_id;
}

absl::StatusOr<StepResult> RunPlan(StepRunner& runner, const StepPlan& plan) {
  return runner.Collect(runner.Submit(plan));
}

void ExpectSameResults(const absl::StatusOr<StepResult>& actual,
                       const absl::StatusOr<StepResult>& expected) {
  ASSERT_EQ(actual.status(), expected.status());
  if (!expected.ok()) return;
  ASSERT_EQ(actual->rows.size(), expected->rows.size());
  for (size_t i = 0; i < expected->rows.size(); ++i) {
    const RowResult& row = actual->rows[i];
    const RowResult& other = expected->rows[i];
    EXPECT_EQ(row.status, other.status) << "row " << i;
    EXPECT_EQ(row.token_id, other.token_id) << "row " << i;
    EXPECT_EQ(row.logprob, other.logprob) << "row " << i;
    ASSERT_EQ(row.top_logprobs.size(), other.top_logprobs.size());
    for (size_t k = 0; k < row.top_logprobs.size(); ++k) {
      EXPECT_EQ(row.top_logprobs[k].token_id, other.top_logprobs[k].token_id);
      EXPECT_EQ(row.top_logprobs[k].logprob, other.top_logprobs[k].logprob);
    }
  }
  ASSERT_EQ(actual->softmax_tails.size(), expected->softmax_tails.size());
  for (size_t c = 0; c < expected->softmax_tails.size(); ++c) {
    EXPECT_EQ(actual->softmax_tails[c].computed,
              expected->softmax_tails[c].computed);
    EXPECT_EQ(actual->softmax_tails[c].skipped,
              expected->softmax_tails[c].skipped);
  }
}

}  // namespace txl
