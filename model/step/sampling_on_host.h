#pragma once

// A ModelStep as a SamplingStep: the host samples from the distributions that
// the step hands out.

#include <cstdint>
#include <memory>

#include "model/sampling/distribution.h"
#include "model/sampling/token_kinds.h"
#include "model/step/model_step.h"
#include "model/step/sampling_step.h"

namespace txl {

// What is called is done when the call returns, so that Collect, Take and Bring
// only hand over. Samples with any parameters and reports any number of
// alternatives. Throws what `step` throws and stays of use afterwards: a step
// that was not queued leaves its rows' slots as they were before their
// positions, with no last sampled token. `slots`: how many the step has;
// `kinds`: the model's, null when it has none.
std::unique_ptr<SamplingStep> SampleOnHost(
    std::unique_ptr<ModelStep> step, VocabularyBins bins, int32_t slots,
    std::shared_ptr<const TokenKinds> kinds = nullptr);

}  // namespace txl
