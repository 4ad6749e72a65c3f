#pragma once

// A case of tests/golden: the original code's weights, text and exact values.

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"

namespace txl {

struct GoldenCase {
  ModelConfig config;
  Weights weights;
  // tokens, segments, logprobs_segmented, logprobs_stepwise, memory_final,
  // memory_final_stepwise
  std::map<std::string, at::Tensor> expected;
  double original_float32_error = 0;
};

// Folder names below tests/golden.
std::vector<std::string> GoldenCaseNames();
std::string GoldenCasePath(const std::string& name);

// Fails the test when a file cannot be read.
GoldenCase LoadGoldenCase(const std::string& name, at::ScalarType dtype);

// Largest absolute difference; infinity when shapes differ or a value is NaN.
double MaxDifference(const at::Tensor& a, const at::Tensor& b);

}  // namespace txl
