#pragma once

// A plan's rows as a SamplingStep takes them, and its results as the plan's.
// Pure functions.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "model/step/sampling_step.h"
#include "server/engine/step_runner.h"

namespace txl {

// What a failed row says; where nothing is left to sample, NothingToSample
// (model/sampling/sampler.h). `position`: of the row's input.
absl::Status UnknownInput();
absl::Status NotFinite(int64_t position);

// What keeps rows of a slot from their result.
struct SlotReadiness {
  absl::Status rows;      // not OK: its rows are unknown, none of them runs
  absl::Status sampling;  // not OK: a kDecode row runs, but samples nothing
};

struct SamplingPlan {
  std::vector<SamplingRow> rows;       // what is to run
  std::vector<size_t> plan_rows;       // which row of the plan each one is
  std::vector<absl::Status> statuses;  // of each row of the plan, beforehand
};

// `slots`: of every slot. kDerive rows have nothing to do where the step does
// not derive. REQUIRES: CheckPlan is OK.
SamplingPlan MakeSamplingPlan(const StepPlan& plan, const RunnerInfo& info,
                              absl::Span<const SlotReadiness> slots);

// `sampled`: results of `sampling.rows`; none where there are no rows.
// `lost[i]`: row i of the plan feeds a token that the host never got. Such a
// row, or one that the device calls kUnknownInput, fails with the rows behind
// it in its slot.
StepResult MakeStepResult(const StepPlan& plan, const SamplingPlan& sampling,
                          SampledRows sampled, const std::vector<bool>& lost);

}  // namespace txl
