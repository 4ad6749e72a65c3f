#pragma once

// Where a turn's results go. The scheduler declares it, rpc implements it: the
// scheduler knows no transport.

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "server/session/turn_events.h"

namespace txl {

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

}  // namespace txl
