#pragma once

// What others see of a session: plain data.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/session/session_name.h"

namespace txl {

enum class SessionState {
  kIdle,  // may be leased, deleted, moved out of its slot, expired
  kBusy,  // one turn holds the lease; only that turn changes the session
};

// What the last turn did; shown by GetSession.
struct LastTurn {
  std::string request_id;
  std::string outcome;  // finish reason or error reason
  int64_t start_position = 0;
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;
};

// A consistent copy of what users see of a session.
struct SessionInfo {
  std::string session_id;
  SessionState state = SessionState::kIdle;
  int64_t position = 0;
  absl::Time create_time;
  absl::Time last_use_time;
  absl::Time expire_time;
  absl::Duration ttl;
  int64_t memory_bytes = 0;      // of segment memory and token ids
  int64_t durable_position = 0;  // of position, on stable storage
  bool in_slot = false;          // a slot holds its segment memory
  LastTurn last_turn;
};

// What the store holds at one moment, for a report of a bug: no ids of tokens,
// no texts.

struct SessionReport {
  uint64_t key = 0;  // as SessionLease::key
  SessionName name;  // empty: temporary
  bool busy = false;
  int64_t position = 0;
  int64_t durable_position = 0;
  int64_t image_rows = 0;  // of the image made last; 0: none was
  bool has_image = false;  // in memory
  absl::Duration idle;     // since the last use
  std::string last_outcome;
};

struct StoreReport {
  int64_t named = 0;      // that clients can name
  int64_t temporary = 0;  // those of turns without a session
  int64_t deleted = 0;    // whose turns still run
  int64_t empty = 0;      // idle and without a token: the first to give way
  int64_t away = 0;       // idle, stored and in no slot: may leave memory
  int64_t in_slot = 0;
  std::vector<SessionReport> sessions;  // in slots, by key
};

class SessionLease;  // session_store.h

// Gets a session that somebody else held, or says why it does not.
using LeaseCallback = std::function<void(absl::StatusOr<SessionLease>)>;

}  // namespace txl
