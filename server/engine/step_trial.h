#pragma once

// The self-test of a step (model/step/self_test.h) with LibTorch's step on the
// CPU as the reference: other code, from the same tensors, which it shares but
// for those of 4 bits (RoundedWeights).

#include <cstdint>

#include "absl/status/statusor.h"
#include "model/step/self_test.h"

namespace txl {

struct ModelConfig;
struct NativeFormats;
struct Weights;

// `weights`: float32 on the CPU, of the model that the step serves in these
// formats. The reference has one slot while this runs. Errors: those of
// TrySelfTest; ResourceExhausted and Internal for what the devices threw.
absl::StatusOr<SelfTestDeviation> TryBesideTorch(const ModelConfig& config,
                                                 const Weights& weights,
                                                 const NativeFormats& formats,
                                                 SamplingStep& step,
                                                 const SelfTestLimits& limits);

}  // namespace txl
