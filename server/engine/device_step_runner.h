#pragma once

// The StepRunner on a ModelStep: one device thread that executes everything in
// the order of the calls. LibTorch's exceptions end here. This header knows no
// tensor type.

#include <memory>

#include "model/sampling/distribution.h"
#include "server/engine/step_runner.h"

namespace txl {

class ModelStep;

// `info`: limits that plans are checked against.
std::unique_ptr<StepRunner> MakeDeviceStepRunner(
    RunnerInfo info, VocabularyBins bins, std::unique_ptr<ModelStep> step);

}  // namespace txl
