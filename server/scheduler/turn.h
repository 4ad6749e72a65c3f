#pragma once

// One turn as the scheduler takes it, already validated and already tokenised,
// and how it ends.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "model/sampling/sampling_params.h"
#include "server/quota/tenant_account.h"
#include "server/session/session_store.h"
#include "server/session/turn_record.h"

namespace txl {

// Where a turn's results go. The scheduler declares it, api implements it: the
// scheduler knows no transport.

struct TurnStarted {
  int64_t position = 0;  // before the turn
  int64_t prompt_tokens = 0;
  uint64_t seed = 0;
  // Tokens that follow and that an earlier call of the same request got.
  int64_t replayed_tokens = 0;
};

// Called by one thread at a time, in the order Started, Token or Scored any
// times, then exactly one of Finished and Failed (Failed may come first of
// all). No call may block. The session's lease is already released
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

enum class TurnKind {
  kGenerate,  // feed input, then sample until a stop rule holds
  kAppend,    // feed input; all or nothing
  kScore,     // log-probabilities of input; the session is unchanged
  // kScore for each of several continuations of the session and the input.
  kAlternatives,
  kSave,  // the session's state in its slot becomes an image, too; no input
};

struct TokenCount {
  int32_t id = 0;
  int32_t count = 0;
};

struct StopRules {
  int32_t max_tokens = 128;
  std::vector<std::string> stop_texts;
  std::vector<int32_t> stop_token_ids;
  std::vector<int32_t> end_token_ids;  // of generation.json
  // The turn ends at this occurrence of the id, as at a stop token.
  std::optional<TokenCount> token_count;
  bool ignore_end_token = false;
  bool include_stop_text = false;
};

// Why the other side no longer wants the turn; set once, from any thread.
class CancelToken {
 public:
  enum class Why : int { kNone, kCancelled, kDeadline };
  // `now`: Clock::Monotonic, where the caller knows it.
  void Cancel(Why why, absl::Duration now = absl::ZeroDuration()) {
    int64_t never = 0;
    when_.compare_exchange_strong(never, absl::ToInt64Nanoseconds(now));
    Why none = Why::kNone;
    why_.compare_exchange_strong(none, why);
  }
  Why why() const { return why_.load(std::memory_order_acquire); }
  // Absent: not cancelled, or the time was not given.
  std::optional<absl::Duration> when() const {
    const int64_t nanoseconds = when_;
    if (nanoseconds == 0) return std::nullopt;
    return absl::Nanoseconds(nanoseconds);
  }

 private:
  std::atomic<Why> why_{Why::kNone};
  std::atomic<int64_t> when_{0};
};

inline constexpr int32_t kMostPriority = 9;

struct Turn {
  TurnKind kind = TurnKind::kGenerate;
  SessionLease lease;
  // Ids to feed. Empty only for kGenerate on a session with position > 0 and
  // for kAlternatives.
  std::vector<int32_t> input;
  // kAlternatives only: each of >= 1 ids. Their scores are reported in this
  // order, one after the other.
  std::vector<std::vector<int32_t>> alternatives = {};
  SamplingParams sampling;
  StopRules stop;
  int32_t top_logprobs = 0;  // alternatives per token
  // Ids whose log-probability is reported for each token; null: none.
  std::shared_ptr<const std::vector<int32_t>> logprob_ids = nullptr;
  bool return_scored = false;  // kAppend: report ScoredToken
  TurnIdentity identity;
  // A broken turn of the same identity that this one goes on with: its tokens
  // are reported again, `input` is empty. kGenerate only.
  std::shared_ptr<const TurnRecord> resumed;
  // Tokens of the turn, from its first one on, that the client has: they are
  // not reported. Those of them that the session lacks are `adopted`: fed
  // behind `input`, they become the session's as if they had been sampled.
  // kGenerate only. REQUIRES: adopted are max(received - resumed tokens, 0).
  int64_t received = 0;
  std::vector<int32_t> adopted = {};
  // kSave only: the session leaves its slot, too.
  bool moves_out = false;
  std::optional<absl::Duration> deadline;  // on Clock::Monotonic
  // The turn shares prompts with this tenant's other turns (prefix_cache.h).
  // Nothing: with none.
  std::optional<std::string> prefix_tenant = std::nullopt;
  // The tenant's account; null: all turns are of one tenant, without quotas.
  TenantAccount* account = nullptr;  // outlives the scheduler
  // Values of the account when the turn was submitted: a turn ends in the
  // counters in which it began.
  int32_t tenant_counts = 0;  // its place in Snapshot::tenants, if there are
  absl::Duration longest = absl::InfiniteDuration();
  int32_t priority = 0;  // in [0, kMostPriority]; more goes first
  std::shared_ptr<TokenSink> sink;
  std::shared_ptr<CancelToken> cancel;

  // Tokens that it feeds before it samples.
  int64_t fed_tokens() const {
    return static_cast<int64_t>(input.size() + adopted.size());
  }
};

// Ids that the turn brings.
inline int64_t InputTokens(const Turn& turn) {
  auto tokens = static_cast<int64_t>(turn.input.size());
  for (const auto& ids : turn.alternatives) {
    tokens += static_cast<int64_t>(ids.size());
  }
  return tokens;
}

// All tokens that the turn feeds: InputTokens and adopted ones.
inline int64_t TokensIn(const Turn& turn) {
  return InputTokens(turn) + static_cast<int64_t>(turn.adopted.size());
}

// Tokens that it feeds and generates at most.
inline int64_t MostTokens(const Turn& turn) {
  return TokensIn(turn) +
         (turn.kind == TurnKind::kGenerate ? turn.stop.max_tokens : 0);
}

inline std::string TenantName(const Turn& turn) {
  return turn.account == nullptr ? std::string() : turn.account->name();
}
inline double TenantWeight(const Turn& turn) {
  return turn.account == nullptr ? 1 : turn.account->weight();
}

// Every way in which a turn fails, as clients see it (docs: the status table of
// the public API).

absl::Status TurnCancelled();
absl::Status TurnDeadlineExceeded();
// DEADLINE_EXCEEDED, DEADLINE_UNREACHABLE: it would pass before the turn began.
absl::Status DeadlineUnreachable();
// DEADLINE_EXCEEDED too; the message names the setting.
absl::Status TurnTooLong(absl::Duration longest_turn);
absl::Status ClientTooSlow();   // RESOURCE_EXHAUSTED, CLIENT_TOO_SLOW
absl::Status ServerDraining();  // UNAVAILABLE, DRAINING
absl::Status QueueFull(absl::Duration retry);  // RESOURCE_EXHAUSTED
// QUEUE_FULL too: it was queued and no slot came within `limit`.
absl::Status QueuedTooLong(absl::Duration limit, absl::Duration retry);
absl::Status NoSessionMemory(absl::Duration retry);  // RESOURCE_EXHAUSTED
// ABORTED, RESUME_MISMATCH: what the client has is not what the turn gave.
absl::Status ResumeMismatch();
// INTERNAL, STEP_FAILED: this turn only. `what` is what was done, `cause` the
// device's own status.
absl::Status StepFailed(absl::string_view what, const absl::Status& cause);
// The error of a failed row: FIELD_INVALID if a field of the turn left no token
// to sample, else StepFailed.
absl::Status RowFailed(const SamplingParams& sampling,
                       const absl::Status& cause);

// Why a turn may not go on, whatever its reader does: a pure function.

// Nothing, or how the turn ends: its session is deleted, the same request came
// again, its client is gone, or at `now` its deadline or the server's
// `longest_turn` since `submitted` has passed. Times are Clock::Monotonic.
std::optional<absl::Status> EndOf(const Turn& turn, absl::Duration submitted,
                                  absl::Duration longest_turn,
                                  absl::Duration now);

}  // namespace txl
