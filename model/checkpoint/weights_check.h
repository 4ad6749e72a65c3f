#pragma once

// What steps want of the weights that they are made from. Errors are
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

// What the head computes for a bin: its words and, in bin 0, the clusters
// behind them.
struct BinOutputs {
  at::Tensor words;  // [outputs, e_b]
  at::Tensor bias;   // [outputs]; undefined: none
};
BinOutputs OutputsOfBin(const ModelConfig& config, const Weights& weights,
                        int64_t bin);

}  // namespace txl
