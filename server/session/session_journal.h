#pragma once

// What of the sessions survives the process: the session store writes every
// change down in one order, and hears when a change is on stable storage. The
// store declares it, server/store implements it: the store knows no database.
//
// A turn on a session makes these entries, in this order:
//
//   journal->Begin(id, intent);     // before Started is sent
//   journal->Append(id, tokens);    // the input with the first token; then
//   journal->Append(id, tokens);    // each token, or several
//   journal->End(id, end);          // whatever way it ended, if it committed
//
// After a crash a session is as before the turn, or holds the turn's input and
// the first of its tokens: all entries of a session up to some entry are kept,
// and none behind it; each entry whole or not at all.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/metrics/metrics.h"
#include "server/session/session_claim.h"
#include "server/session/session_info.h"
#include "server/session/token_sequence.h"
#include "server/session/turn_record.h"

namespace txl {

// What a turn is going to do, and all that a retry needs to do it again.
struct TurnIntent {
  TurnIdentity identity;  // may be without a name
  uint64_t seed = 0;
  int64_t start_position = 0;  // tokens before the turn
  int64_t prompt_tokens = 0;
};

// Ids that a session takes on together.
struct JournalTokens {
  int64_t from = 0;          // the session's tokens before them
  std::vector<int32_t> ids;  // input, then generated ones
  // One event for each generated id (these are the last ones in `ids`) if the
  // turn has a name; else empty.
  std::vector<TokenEvent> events;
};

// How a turn left its session.
struct JournalEnd {
  JournalTokens tokens;  // taken on with the end itself; ids may be empty
  LastTurn last_turn;
  std::string detokenizer;                 // Detokenizer::State after the turn
  std::vector<uint64_t> earlier_requests;  // RequestHistory
  std::shared_ptr<const TurnRecord> record;  // null: no retry is known
  absl::Time last_use;
};

// A session without its ids, as it is made.
struct StoredHead {
  std::string session_id;  // SessionName::text
  absl::Duration ttl;
  absl::Time create_time;
  absl::Time last_use;
  std::string detokenizer;  // Detokenizer::State; empty: of a fresh one
  LastTurn last_turn;
  std::vector<uint64_t> earlier_requests;
};

// A whole session, as it comes back.
struct StoredSession {
  StoredHead head;
  TokenSequence token_ids;
  // Record of head.last_turn or null; its detokenizer is record_detokenizer.
  std::shared_ptr<const TurnRecord> record;
  std::string record_detokenizer;  // Detokenizer::State before that turn
  // A turn that had begun and not ended. What it had taken on is the end of
  // token_ids; head is as it was before the turn.
  std::optional<TurnIntent> running;
  int64_t running_tokens = 0;              // taken on in this run
  std::vector<TokenEvent> running_events;  // JournalTokens::events of it
  // Version of a shared session that this copy has.
  std::shared_ptr<SessionClaim> claim;
};

// What a listing shows of a session that is not in memory.
struct StoredInfo {
  StoredHead head;
  int64_t position = 0;
};

// What a session holds that is not in memory, tokens of a turn that had not
// ended included; of a damaged one: what is said of it.
struct StoredPosition {
  std::string session_id;
  int64_t position = 0;
};

struct JournalStatus {
  uint64_t entries = 0;     // made so far
  uint64_t durable = 0;     // of them on stable storage, the first ones
  int64_t sessions = 0;     // stored
  int64_t bytes = 0;        // of the database with its log
  int64_t limit_bytes = 0;  // of the database; 0: none
  int64_t commits = 0;
  Histogram commit_seconds{kCommitBounds};  // of those commits
  int64_t tokens_written = 0;               // durable
  int64_t tokens_waiting = 0;               // entered, not durable
  int64_t acquired = 0;                     // a shared journal: ownerships,
  int64_t taken_over = 0;                   // of them from an owner
  int64_t fenced = 0;                       // copies lost to other servers
  int64_t busy = 0;                         // refused: another one owns it
  int64_t tokens_lost = 0;  // durable once, and not in the storage any more
  bool full = false;        // nothing is acknowledged until there is room
  bool failed = false;      // the storage failed; the process has to end
};

// Sessions are SessionName::text here. Thread-safe. Entries never wait for the
// storage; they are queued in the order of the calls. Callbacks run on the
// journal's thread, without its lock: they must not wait, and may make entries.
class SessionJournal {
 public:
  virtual ~SessionJournal() = default;

  // Entries; each returns its number, from 1 on without gaps.
  //
  // A new session that holds `ids`. REQUIRES: none of that id is stored.
  virtual uint64_t Create(const StoredHead& head, const TokenSequence& ids) = 0;
  // A new session that holds the first `position` ids of `parent`.
  virtual uint64_t Fork(const std::string& parent, int64_t position,
                        const StoredHead& child) = 0;
  virtual uint64_t Begin(const std::string& session_id, TurnIntent intent,
                         absl::Time now) = 0;
  virtual uint64_t Append(const std::string& session_id,
                          JournalTokens tokens) = 0;
  virtual uint64_t End(const std::string& session_id, JournalEnd end) = 0;
  // The session holds its first `position` ids, head is what it is now, and no
  // retry is known.
  virtual uint64_t Rewind(const std::string& session_id, int64_t position,
                          const StoredHead& head) = 0;
  virtual uint64_t Remove(const std::string& session_id) = 0;

  // The number of the last entry.
  virtual uint64_t last_entry() const = 0;
  // Every entry up to this one is on stable storage.
  virtual uint64_t durable_entry() const = 0;
  // Calls `done` once entry `entry` is on stable storage, at once where it is,
  // or with what keeps it from there: RESOURCE_EXHAUSTED STORE_FULL,
  // UNAVAILABLE STORE_UNAVAILABLE. Hurries the next commit.
  virtual void WhenDurable(uint64_t entry,
                           std::function<void(const absl::Status&)> done) = 0;

  // Reads see all entries that were made before the call.
  //
  // Errors: NOT_FOUND SESSION_UNKNOWN; DATA_LOSS SESSION_DAMAGED;
  // FAILED_PRECONDITION MODEL_MISMATCH (a session of another model);
  // RESOURCE_EXHAUSTED STORE_FULL (the session has entries that wait for room;
  // lists are without them); UNAVAILABLE STORE_UNAVAILABLE.
  virtual void Load(
      const std::string& session_id,
      std::function<void(absl::StatusOr<StoredSession>)> done) = 0;
  // At most `count` sessions by id, those of the tenant of `after` after it.
  virtual void List(
      const std::string& after, int64_t count,
      std::function<void(absl::StatusOr<std::vector<StoredInfo>>)> done) = 0;
  // At most `count` sessions whose time-to-live passed before `now`, counted
  // from the last use that was entered.
  virtual void ListExpired(
      absl::Time now, int64_t count,
      std::function<void(absl::StatusOr<std::vector<StoredPosition>>)>
          done) = 0;
  // Tells `each` of this session, or of all where the id is empty, one by one;
  // damaged ones and those of other models, too.
  virtual void Positions(const std::string& session_id,
                         std::function<void(const StoredPosition&)> each,
                         std::function<void(const absl::Status&)> done) = 0;

  virtual JournalStatus status() const = 0;
  // Commits what is there and folds it, at most so long; for the end of a
  // process.
  virtual void Drain(absl::Duration timeout) = 0;
};

// How much of a session is on stable storage, as far as its journal has come.

// Not thread-safe. Takes memory for entries that wait for the storage, and for
// one more.
class DurablePosition {
 public:
  DurablePosition() = default;
  // Of a session that came from the journal.
  explicit DurablePosition(int64_t position) {
    left_at_.emplace_back(0, position);
  }

  // Entry `entry` left the session at `position`; all up to `durable` are on
  // stable storage.
  void Entered(uint64_t entry, int64_t position, uint64_t durable) {
    left_at_.emplace_back(entry, position);
    auto first = left_at_.begin();
    while (first + 1 != left_at_.end() && (first + 1)->first <= durable) {
      ++first;
    }
    left_at_.erase(left_at_.begin(), first);
  }
  // Tokens of the session that are on stable storage.
  int64_t At(uint64_t durable) const {
    int64_t position = 0;
    for (const auto& [entry, left_at] : left_at_) {
      if (entry <= durable) position = left_at;
    }
    return position;
  }
  // Everything of the session is.
  bool Settled(uint64_t durable) const {
    return left_at_.empty() || left_at_.back().first <= durable;
  }

 private:
  // Entries with the positions that they left; at most the first is durable.
  std::vector<std::pair<uint64_t, int64_t>> left_at_;
};

}  // namespace txl
