#pragma once

// Small models of random shape, with random weights where a trained model has
// some: biases, norms that are not (1, 0), projections.

#include <cstdint>
#include <string>
#include <vector>

#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"

namespace txl {

struct RandomCase {
  ModelConfig config;
  Weights weights;              // float32
  std::vector<int32_t> tokens;  // more than the memory holds

  // The shape in words, for a failing test.
  std::string Describe() const;
};

// Every choice follows from the seed: heads, widths that are no multiple of 8,
// window, clamp, start, norms, position kind, activations, bins.
RandomCase MakeRandomCase(uint32_t seed);

// The choices alone.
ModelConfig RandomConfig(uint32_t seed);
// Weights of a config, and tokens, `length` of them.
RandomCase CaseOf(const ModelConfig& config, uint32_t seed, int64_t length);

// A model that promises are checked of: bins, two norms, zero start.
RandomCase PromiseCase();

}  // namespace txl
