#pragma once

// The model of models/shakespeare, and text for it.

#include <cstdint>
#include <memory>
#include <vector>

#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"
#include "model/step/model_step.h"

namespace txl {

struct ShippedModel {
  ModelConfig config;
  Weights weights;            // float32
  std::vector<int32_t> text;  // 747 characters of a play, as ids
};

// Throws std::runtime_error saying what could not be read.
ShippedModel LoadShippedModel();

// The native step for CPUs in float32, which is the oracle; slots are cleared.
std::unique_ptr<ModelStep> MakeShippedOracle(const ShippedModel& model,
                                             int64_t slots);

}  // namespace txl
