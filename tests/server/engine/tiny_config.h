#pragma once

// A model that is built in no time, for tests of what is built around one.

#include "model/config/model_config.h"

namespace txl {

inline ModelConfig TinyConfig() {
  ModelConfig config;
  config.vocab_size = 23;
  config.n_layer = 2;
  config.n_head = 2;
  config.d_head = 8;
  config.d_model = 16;
  config.d_embed = 16;
  config.d_inner = 24;
  config.mem_len = 9;
  return config;
}

}  // namespace txl
