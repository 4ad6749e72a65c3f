#pragma once

#include <cstdint>

#include "model/sampling/sampling_params.h"

namespace txl {

// Every parameter for some sessions, alone and with others; a quarter greedy.
// For a model with kinds of tokens.
inline SamplingParams SamplingOf(int session) {
  SamplingParams sampling;
  sampling.seed = 100 + static_cast<uint64_t>(session);
  sampling.temperature = session % 4 == 0 ? 0 : 0.4 + 0.05 * (session % 20);
  if (session % 3 == 0) sampling.top_k = 2 + session % 9;
  if (session % 5 == 1) sampling.top_p = 0.7;
  if (session % 7 == 2) sampling.min_p = 0.05;
  if (session % 8 == 3) sampling.typical_p = 0.8;
  if (session % 9 == 4) sampling.repetition_penalty = 1.3;
  if (session % 10 == 5) sampling.presence_penalty = 0.6;
  if (session % 11 == 6) sampling.frequency_penalty = -0.4;
  if (session % 6 == 1) sampling.logit_bias = {{1, 2.5}, {3, -100}};
  if (session % 12 == 7) sampling.allowed_token_ids = {1, 2, 4, 7};
  if (session % 13 == 8) sampling.follow_kinds = true;
  return sampling;
}

}  // namespace txl
