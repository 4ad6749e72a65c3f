#pragma once

// The StepRunner on a SamplingStep: the next step is queued on the device while
// the last one runs, and a state on its way to the host keeps no step waiting.
// Two threads of its own: one that queues, in the order of the calls, and one
// that waits for states. Exceptions of the device end here.
//
// A row that the device cannot sample or report (SamplingStep::CanSample,
// RunnerInfo::most_top_logprobs) fails alone, with InvalidArgument; who builds
// a runner makes sure that no request of its users is such.

#include <memory>

#include "model/step/sampling_step.h"
#include "server/engine/step_runner.h"

namespace txl {

// `info`: what the step can, and limits that plans are checked against; its
// depth is at most SamplingStep::kDepth.
std::unique_ptr<StepRunner> MakeSamplingStepRunner(
    RunnerInfo info, std::unique_ptr<SamplingStep> step);

}  // namespace txl
