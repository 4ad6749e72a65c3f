#pragma once

// One session as the store keeps it.

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "model/memory/state_image.h"
#include "model/text/vocabulary.h"
#include "server/session/lease_callback.h"
#include "server/session/request_history.h"
#include "server/session/session_info.h"
#include "server/session/token_sequence.h"
#include "server/session/turn_record.h"

namespace txl {

// Changed under the store's mutex only, and what a turn changes (token_ids,
// detokenizer, last_turn) by the holder of the lease only. So the holder reads
// those without the mutex, everybody else with it.
struct SessionRecord {
  // Constant after creation.
  uint64_t key = 0;
  std::string session_id;  // empty: temporary
  absl::Duration ttl;
  absl::Time create_time;

  bool busy = false;
  absl::Time last_use_time;  // wall clock, shown
  absl::Duration last_use;   // Clock::Monotonic; decides
  // Read without the mutex by the running turn.
  std::atomic<bool> delete_requested{false};
  std::atomic<bool> superseded{false};
  // The running turn's, and who gets the session after it; null: nobody.
  TurnIdentity running;
  LeaseCallback next;

  TokenSequence token_ids;
  // Ids whose bytes are taken from the budget: those held, and reserved ones.
  int64_t charged_tokens = 0;
  std::unique_ptr<Detokenizer> detokenizer;  // null without a vocabulary
  LastTurn last_turn;
  RequestHistory earlier_requests;  // of the turns before the last one
  std::shared_ptr<const TurnRecord> turn_record;  // of last_turn, or null
  // While there is a turn_record.
  int64_t record_bytes = 0;
  std::list<uint64_t>::iterator record_age;
  std::shared_ptr<const StateImage> image;

  bool temporary() const { return session_id.empty(); }
  int64_t position() const { return token_ids.size(); }
  absl::Duration ExpiresAt() const { return last_use + ttl; }
};

}  // namespace txl
