#pragma once

// The smallest model that shows every term of a loss: 7 words, two layers, a
// memory of 4.

#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"

namespace txl {

inline ModelConfig SmallestConfig() {
  ModelConfig config;
  config.vocab_size = 7;
  config.n_layer = 2;
  config.n_head = 2;
  config.d_head = 3;
  config.d_model = config.d_embed = 6;
  config.d_inner = 5;
  config.mem_len = 4;
  config.tie_weight = true;
  config.tie_projs = {false};
  return config;
}

inline Weights SmallestWeights() {
  return RandomWeights(SmallestConfig(), 0.6, 2, {at::kDouble, at::kCPU});
}

}  // namespace txl
