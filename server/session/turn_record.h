#pragma once

// What a turn with a request_id leaves behind, so that the same request, sent
// again, gets the same answer: docs/design/retries.md.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/sampling/sampler.h"
#include "model/text/vocabulary.h"
#include "server/session/session_info.h"

namespace txl {

// What a turn gives, as the scheduler reports it and a session keeps it.

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
  // Of the prompt, those whose rows were in the prefix cache.
  int64_t cached_tokens = 0;
  // Tokens of the session fed again, since its state was lost.
  int64_t rebuilt_tokens = 0;
  TurnTiming timing;
};

// Knows which request ids a session's earlier turns had, so that a retry that
// comes after a later turn is not taken for a new turn.

// Keeps a hash of each id, 8 bytes, the same in every process: a new id is
// taken for one of n earlier ones with a probability of n / 2^64, unless it was
// made to be. Not thread-safe.
class RequestHistory {
 public:
  RequestHistory() = default;
  // What hashes() of another one gave.
  explicit RequestHistory(std::vector<uint64_t> hashes)
      : hashes_(std::move(hashes)) {}

  // The newest of at most `capacity` >= 0 ids; the oldest is forgotten first.
  void Add(absl::string_view request_id, int64_t capacity);
  bool Contains(absl::string_view request_id) const;
  // Oldest first.
  const std::vector<uint64_t>& hashes() const { return hashes_; }

 private:
  std::vector<uint64_t> hashes_;  // oldest first
};

// Which request a turn runs.
struct TurnIdentity {
  // The client's; empty: none, never equal to another.
  std::string request_id = {};
  std::string digest = {};  // equal for equal requests, else not

  bool named() const { return !request_id.empty(); }
  friend bool operator==(const TurnIdentity& a, const TurnIdentity& b) {
    return a.named() && a.request_id == b.request_id && a.digest == b.digest;
  }
};

// Constant once the session keeps it.
struct TurnRecord {
  TurnIdentity identity;
  int64_t start_position = 0;  // tokens before the turn
  int64_t prompt_tokens = 0;
  uint64_t seed = 0;
  std::vector<TokenEvent> tokens;   // generated, all of them, in order
  std::vector<ScoredToken> scored;  // of a fed input
  // Absent: the turn broke off; the session holds the prompt and `tokens`.
  std::optional<TurnFinished> finished;
  // The session's before the turn; null without a vocabulary. Only cloned.
  std::shared_ptr<const Detokenizer> detokenizer;

  // Memory that it takes, about.
  int64_t Bytes() const;
};

// The record to answer a request of this identity from; null: it is a new turn.
// `record` (may be null), `last` and `earlier` are the session's. Errors:
// FIELD_INVALID request_id (the id belongs to another request), ABORTED
// REPLAY_EVICTED (the turn is done, but its record was given up, or a later
// turn of the session took its place).
absl::StatusOr<std::shared_ptr<const TurnRecord>> RecordFor(
    const TurnIdentity& identity, std::shared_ptr<const TurnRecord> record,
    const LastTurn& last, const RequestHistory& earlier);

}  // namespace txl
