#pragma once

// What StepRunner requires of its caller, checked. Pure functions.

#include <cstdint>

#include "absl/status/status.h"
#include "server/engine/step_runner.h"

namespace txl {

// InvalidArgument where there is no such slot; for a state's rows, position.
absl::Status CheckSlot(int32_t slot, const RunnerInfo& info);
absl::Status CheckExport(int32_t slot, int64_t position,
                         const RunnerInfo& info);

// InvalidArgument naming the row that breaks what Submit requires.
absl::Status CheckPlan(const StepPlan& plan, const RunnerInfo& info);

}  // namespace txl
