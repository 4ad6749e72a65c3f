#pragma once

// A plan's rows as the step wants them: checked, inputs resolved, consecutive
// rows of one slot joined. Pure functions; no tensor.

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/step_runner.h"

namespace txl {

// Consecutive rows of one slot with known inputs.
struct PlanSegment {
  int32_t slot = 0;
  int64_t position = 0;
  size_t first_row = 0;          // in the plan
  std::vector<int32_t> tokens;   // one per row
  std::vector<int32_t> outputs;  // rows (indices into tokens) with output
};

// kDerive rows of one slot.
struct PlanDerivation {
  int32_t slot = 0;
  size_t first_row = 0;  // in the plan
  int64_t rows = 0;
};

struct SegmentedPlan {
  std::vector<PlanSegment> segments;
  std::vector<PlanDerivation> derivations;
  // Rows that cannot run: their kLastSampled input is not known, or a row
  // before them in the slot cannot run. In order.
  std::vector<size_t> unknown_inputs;
};

// InvalidArgument where there is no such slot; for a state's rows, position.
absl::Status CheckSlot(int32_t slot, const RunnerInfo& info);
absl::Status CheckExport(int32_t slot, int64_t position,
                         const RunnerInfo& info);

// InvalidArgument naming the row that breaks what Submit requires.
absl::Status CheckPlan(const StepPlan& plan, const RunnerInfo& info);

// `last_sampled`: per slot the token that its last kDecode row sampled.
// REQUIRES: CheckPlan is OK.
SegmentedPlan SegmentPlan(
    const StepPlan& plan,
    absl::Span<const std::optional<int32_t>> last_sampled);

}  // namespace txl
