#pragma once

// What a step asks of the weights that it is made from. Errors are
// InvalidArgument and name the weights.

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"

namespace txl {

// Refuses other numbers of layers and bins than `config` has.
absl::Status CheckCounts(const Weights& weights, const ModelConfig& config);

// That, and float32 on the CPU, from where a step packs its own. `step`: whose
// weights they are to be, as in "the CUDA step".
absl::Status CheckFloat32OnCpu(const Weights& weights,
                               const ModelConfig& config,
                               absl::string_view step);

}  // namespace txl
