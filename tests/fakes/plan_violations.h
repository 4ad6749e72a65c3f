#pragma once

// What of a plan breaks StepRunner's preconditions; row by row, in words. The
// engine's own check (server/engine/sampling_plan.h) is written apart.

#include <string>
#include <vector>

#include "server/engine/step_runner.h"

namespace txl {

std::vector<std::string> PlanViolations(const StepPlan& plan,
                                        const RunnerInfo& info);

}  // namespace txl
