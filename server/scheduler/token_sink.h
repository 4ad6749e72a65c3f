#pragma once

// Where a turn's results go. The scheduler declares it, rpc implements it: the
// scheduler knows no transport.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/sampling/sampler.h"
#include "model/sampling/sampling_params.h"

namespace txl {

enum class FinishReason {
  kMaxTokens,
  kStopText,
  kStopToken,
  kEndToken,
  kServerDrain,
};

struct TurnStarted {
  int64_t position = 0;  // before the turn
  int64_t prompt_tokens = 0;
};

struct TokenEvent {
  int32_t index = 0;  // 0, 1, ... gap-free
  int32_t token_id = 0;
  std::string text;  // valid UTF-8, possibly empty (held back)
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

// Called from the scheduler's thread only, in the order Started, Token or
// Scored any times, then exactly one of Finished and Failed (Failed may come
// first of all). No call may block. The session's lease is already released
// when Finished or Failed is called, so that a client that has seen the end can
// start its next turn at once.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  virtual void Started(const TurnStarted& started) = 0;
  virtual void Token(TokenEvent event) = 0;
  virtual void Scored(std::vector<ScoredToken> tokens) = 0;
  virtual void Finished(const TurnFinished& finished) = 0;
  // Canonical code, and a reason of api.md as the payload that
  // server/base/error.h attaches.
  virtual void Failed(const absl::Status& status) = 0;
  // Events taken but not yet on the wire; thread-safe. A turn whose sink holds
  // `park_events` or more is parked: its session stops stepping.
  virtual int Unsent() const = 0;
};

}  // namespace txl
