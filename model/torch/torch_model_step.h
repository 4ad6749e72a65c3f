#pragma once

// A TorchStep as the engine's ModelStep.

#include <memory>

#include "model/step/model_step.h"

namespace txl {

class TorchStep;

// `bins`: the vocabulary of the step's model.
std::unique_ptr<ModelStep> AsModelStep(std::unique_ptr<TorchStep> step,
                                       VocabularyBins bins);

}  // namespace txl
