#pragma once

// One session as the store keeps it.

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "model/memory/state_image.h"
#include "model/text/vocabulary.h"
#include "server/base/byte_budget.h"
#include "server/session/session_claim.h"
#include "server/session/session_info.h"
#include "server/session/session_journal.h"
#include "server/session/session_name.h"
#include "server/session/token_sequence.h"
#include "server/session/turn_record.h"

namespace txl {

// Host bytes that a session takes without its ids: the record, its nodes in
// the store's tables, an id of 64 characters, the detokenizer, the last turn,
// the ids of 16 earlier requests. session_store_impl_test.cc measures it.
inline constexpr int64_t kSessionRecordBytes = 2048;

struct SessionRecord;
using RecordPtr = std::shared_ptr<SessionRecord>;

// Changed under the store's mutex only, and what a turn changes (token_ids,
// detokenizer, last_turn) by the holder of the lease only. So the holder reads
// those without the mutex, everybody else with it.
struct SessionRecord {
  // Another one after a rewind: rows of the old one are no longer the
  // session's.
  uint64_t key = 0;
  // Constant after creation.
  SessionName name;  // empty: temporary
  absl::Duration ttl;
  absl::Time create_time;

  bool busy = false;
  absl::Time last_use_time;  // wall clock, shown
  absl::Duration last_use;   // Clock::Monotonic; decides
  // Read without the mutex by the running turn.
  std::atomic<bool> delete_requested{false};
  std::atomic<bool> superseded{false};
  // The running turn's, and the caller that gets the session next; null: none.
  TurnIdentity running;
  LeaseCallback next;

  TokenSequence token_ids;
  // Ids whose bytes are taken from the budget: those held, and reserved ones.
  int64_t charged_tokens = 0;
  // First full pieces of the charged ids that other sessions share. Each is
  // charged once, until its last session releases it.
  std::vector<std::shared_ptr<const ByteHold>> shared_pieces;
  // The SessionQuota has it, with charged_tokens.
  bool counted = false;
  std::unique_ptr<Detokenizer> detokenizer;  // null without a vocabulary
  LastTurn last_turn;
  // Intent of the turn that began last.
  std::optional<TurnIntent> intent;
  // Ids that the journal gets with the turn's end.
  JournalTokens tokens_of_end;
  // Entries of the session go to the journal.
  bool journaled = false;
  // Version that this copy has. Null: temporary, or no shared journal.
  std::shared_ptr<SessionClaim> claim;
  bool owned = false;  // the running turn's server has acquired it
  // An Acquire for the running turn has not been answered. Calls that look at
  // the session wait for the answer; `looked_for`: there are some.
  bool acquiring = false;
  bool looked_for = false;
  // The store has a turn that had not ended: who owns the session ends it.
  bool open_turn = false;
  DurablePosition durable;
  // A slot holds its rows, so that it stays in memory.
  bool in_slot = false;
  // Clock::Monotonic; what came from the store lately is going to be used.
  absl::Duration loaded = -absl::InfiniteDuration();
  RequestHistory earlier_requests;  // of the turns before the last one
  std::shared_ptr<const TurnRecord> turn_record;  // of last_turn, or null
  // While there is a turn_record.
  int64_t record_bytes = 0;
  std::list<SessionRecord*>::iterator record_age;
  std::shared_ptr<const StateImage> image;
  int64_t image_rows = 0;  // StateImage::position of the one made last

  bool temporary() const { return name.empty(); }
  int64_t position() const { return token_ids.size(); }
  absl::Duration ExpiresAt() const { return last_use + ttl; }
  // The last turn becomes an earlier one, unless it was of this request; at
  // most so many earlier ones are remembered.
  void SetLastTurn(LastTurn turn, int64_t remembered) {
    if (!last_turn.request_id.empty() &&
        last_turn.request_id != turn.request_id) {
      earlier_requests.Add(last_turn.request_id, remembered);
    }
    last_turn = std::move(turn);
  }
};

}  // namespace txl
