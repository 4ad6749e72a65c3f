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

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "model/step/sampling_step.h"
#include "server/engine/step_runner.h"

namespace txl {

// `info`: what the step can, and limits that plans are checked against; its
// depth is at most SamplingStep::kDepth.
std::unique_ptr<StepRunner> MakeSamplingStepRunner(
    RunnerInfo info, std::unique_ptr<SamplingStep> step);

// An imported image on its way to its slot, waited for by who asked for it and
// by who uses the slot.

// Thread-safe.
class ImageArrival {
 public:
  struct Outcome {
    absl::Status refused;  // the image's fault: nothing was changed
    absl::Status broken;   // the device's fault: the slot's rows are unknown
    const absl::Status& status() const {
      return refused.ok() ? broken : refused;
    }
  };

  explicit ImageArrival(std::unique_ptr<StateArrival> arrival);

  // The first call brings it, the others wait for that one.
  Outcome Bring();

 private:
  absl::Mutex mutex_;
  std::unique_ptr<StateArrival> arrival_ ABSL_GUARDED_BY(mutex_);  // until then
  Outcome outcome_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace txl
