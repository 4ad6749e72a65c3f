#pragma once

// One turn as the scheduler takes it: already validated, already tokenised.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "model/sampling/sampling_params.h"
#include "server/scheduler/token_sink.h"
#include "server/session/session_store.h"

namespace txl {

enum class TurnKind {
  kGenerate,  // feed input, then sample until a stop rule holds
  kAppend,    // feed input; all or nothing
  kScore,     // log-probabilities of input; the session is unchanged
};

struct StopRules {
  int32_t max_tokens = 128;
  std::vector<std::string> stop_texts;
  std::vector<int32_t> stop_token_ids;
  std::vector<int32_t> end_token_ids;  // of generation.json
  bool ignore_end_token = false;
  bool include_stop_text = false;
};

// Why the other side no longer wants the turn; set once, from any thread.
class CancelToken {
 public:
  enum class Why : int { kNone, kCancelled, kDeadline };
  void Cancel(Why why) {
    Why none = Why::kNone;
    why_.compare_exchange_strong(none, why);
  }
  Why why() const { return why_.load(std::memory_order_acquire); }

 private:
  std::atomic<Why> why_{Why::kNone};
};

struct Turn {
  TurnKind kind = TurnKind::kGenerate;
  SessionLease lease;
  // Ids to feed. Empty only for kGenerate on a session with position > 0.
  std::vector<int32_t> input;
  SamplingParams sampling;
  StopRules stop;
  int32_t top_logprobs = 0;    // alternatives per token
  bool return_scored = false;  // kAppend: report ScoredToken
  TurnIdentity identity;
  // A broken turn of the same identity that this one goes on with: its tokens
  // are reported again, `input` is empty. kGenerate only.
  std::shared_ptr<const TurnRecord> resumed;
  std::optional<absl::Duration> deadline;  // on Clock::Monotonic
  std::shared_ptr<TokenSink> sink;
  std::shared_ptr<CancelToken> cancel;
};

}  // namespace txl
