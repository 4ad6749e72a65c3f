#pragma once

// What others see of a session: plain data.

#include <cstdint>
#include <string>

#include "absl/time/time.h"

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

}  // namespace txl
