#pragma once

// What a turn gives, as the scheduler reports it and a session keeps it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/sampling/sampler.h"

namespace txl {

enum class FinishReason {
  kMaxTokens,
  kStopText,
  kStopToken,
  kEndToken,
  kServerDrain,
};

struct TokenEvent {
  int32_t index = 0;  // 0, 1, ... gap-free
  int32_t token_id = 0;
  std::string text;  // valid UTF-8, possibly empty (held back)
  // Code points of earlier tokens' text that stop texts held back when this one
  // came: its own text begins so far behind the text sent before it.
  int32_t held_back = 0;
  float logprob = 0;
  std::vector<TokenLogprob> top_logprobs;
};

struct ScoredToken {
  int32_t token_id = 0;
  std::optional<float> logprob;  // absent: first token without context
  std::string text;
  std::vector<TokenLogprob> top_logprobs;
};

struct TurnTiming {
  double queued_seconds = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;
};

struct TurnFinished {
  FinishReason reason = FinishReason::kMaxTokens;  // GENERATE only
  int64_t position = 0;                            // after the turn
  std::string text;                                // held-back rest
  std::string matched_stop_text;
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;
  TurnTiming timing;
};

}  // namespace txl
