#pragma once

// What a turn with a request_id leaves behind, so that the same request, sent
// again, gets the same answer: docs/design/retries.md.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/text/vocabulary.h"
#include "server/session/request_history.h"
#include "server/session/session_info.h"
#include "server/session/turn_events.h"

namespace txl {

// Which request a turn runs.
struct TurnIdentity {
  // The client's; empty: none, never equal to another.
  std::string request_id = {};
  std::string digest = {};  // equal for equal requests, else not

  bool named() const { return !request_id.empty(); }
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
