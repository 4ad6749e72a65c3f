#pragma once

// Which of a plan's rows a SamplingStep runs, and its results as the plan's.
// Pure functions.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "model/step/sampling_step.h"
#include "model/step/step_row.h"
#include "server/engine/step_runner.h"

namespace txl {

// What keeps rows of a slot from their result.
struct SlotReadiness {
  absl::Status rows;      // not OK: its rows are unknown, none of them runs
  absl::Status sampling;  // not OK: a kDecode row runs, but samples nothing
};

struct SamplingPlan {
  std::vector<StepRow> rows;           // what is to run
  std::vector<size_t> plan_rows;       // which row of the plan each one is
  std::vector<absl::Status> statuses;  // of each row of the plan, beforehand
};

// `slots`: of every slot. kDerive rows have nothing to do where the step does
// not derive. REQUIRES: CheckPlan is OK.
SamplingPlan MakeSamplingPlan(const StepPlan& plan, const RunnerInfo& info,
                              absl::Span<const SlotReadiness> slots);

// `sampled`: results of `sampling.rows`; none where there are no rows.
// `lost[i]`: row i of the plan feeds a token that the host never got. Such a
// row, or one that the device calls UnknownInput, fails with the rows behind it
// in its slot.
StepResult MakeStepResult(const StepPlan& plan, const SamplingPlan& sampling,
                          SampledRows sampled, const std::vector<bool>& lost);

// What StepRunner requires of its caller, checked. Pure functions.

// InvalidArgument where there is no such slot; for a state's rows, position.
absl::Status CheckSlot(int32_t slot, const RunnerInfo& info);
absl::Status CheckExport(int32_t slot, int64_t position,
                         const RunnerInfo& info);

// InvalidArgument naming the row that breaks what Submit requires.
absl::Status CheckPlan(const StepPlan& plan, const RunnerInfo& info);

}  // namespace txl
