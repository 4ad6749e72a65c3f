#pragma once

// The runners that tests of StepRunner's contract run over, and plans.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/runner_options.h"
#include "server/engine/step_runner.h"
#include "tests/model/torch/golden_case.h"
#include "tests/server/engine/host_sampling_step.h"

namespace txl {

enum class RunnerKind {
  kTorch,     // LibTorch's step in float64, sampled on the host
  kNative,    // the native step, sampled on the host
  kSampling,  // HostSamplingStep, with the native step
};
std::string NameOf(RunnerKind kind);

// 3 slots, 16 spare rows, plans of 24 rows.
StepRunnerOptions SmallOptions();

// In the dtype that the kind wants.
GoldenCase LoadModel(RunnerKind kind, const std::string& name);

struct TestRunner {
  std::unique_ptr<StepRunner> runner;
  std::shared_ptr<StepControl> control;  // of the sampling kind
  StepRunner* operator->() const { return runner.get(); }
  StepRunner& operator*() const { return *runner; }
};
TestRunner MakeTestRunner(RunnerKind kind, const GoldenCase& golden,
                          const StepRunnerOptions& options = SmallOptions());

inline std::shared_ptr<const StateImage> Shared(StateImage image) {
  return std::make_shared<const StateImage>(std::move(image));
}
SlotSampling Greedy();
StepRow Row(int32_t slot, int64_t position, RowKind kind, int32_t token);
inline StepRow Decode(int32_t slot, int64_t position, int32_t token) {
  return Row(slot, position, RowKind::kDecode, token);
}
StepRow Score(int32_t slot, int64_t position, int32_t token, int32_t target);
// Feeds ids[0..n-1], the last of them as a decoding row.
StepPlan PromptPlan(int32_t slot, const std::vector<int32_t>& ids);
// Decodes what the slot sampled last.
StepPlan NextPlan(int32_t slot, int64_t position);

// Of the step's last row.
int32_t OnlyToken(StepRunner& runner, StepId step);
absl::StatusOr<StepResult> RunPlan(StepRunner& runner, const StepPlan& plan);

// Bit for bit, statuses with their texts.
void ExpectSameResults(const absl::StatusOr<StepResult>& actual,
                       const absl::StatusOr<StepResult>& expected);

}  // namespace txl
