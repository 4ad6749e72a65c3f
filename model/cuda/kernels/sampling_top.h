#pragma once

// Parts of sample_rows.cu: the best words of a row (TopLogprobs of
// model/sampling/distribution.h). Both launches are queued by LaunchSampling.

#include "model/cuda/kernels/sampling.h"

namespace txl::cuda {

// Before the first round: the clusters that the best words can be in, by the
// head alone, into the rows' states.
void LaunchFindTopClusters(Stream& stream, const SamplingArgs& args);

// After the last round.
void LaunchReportTop(Stream& stream, const SamplingArgs& args);

}  // namespace txl::cuda
