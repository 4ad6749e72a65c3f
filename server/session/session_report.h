#pragma once

// What the store holds at one moment, for a report of a bug: no ids of tokens,
// no texts.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/session/session_name.h"

namespace txl {

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

}  // namespace txl
