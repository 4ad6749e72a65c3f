#pragma once

// One case of tests/golden: a tiny model and what the original code computes
// from it.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"

namespace txl {

struct GoldenCase {
  std::string name;
  ModelConfig config;
  Weights weights;
  std::vector<int32_t> tokens;    // [T]
  std::vector<int64_t> segments;  // lengths, sum T
  at::Tensor stepwise;            // [T, V] float64
  // Largest error of a case: float64 1e-9, float32 from what the original code
  // itself loses in float32.
  double tolerance = 0;
};

std::vector<std::string> GoldenCaseNames();

// Throws std::runtime_error naming what could not be read.
GoldenCase LoadGoldenCase(const std::string& name, at::ScalarType dtype);

}  // namespace txl
