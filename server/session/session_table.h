#pragma once

// Which sessions are in memory, by key and by name, and which of them are idle.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/metrics/server_status.h"
#include "server/session/session_info.h"
#include "server/session/session_journal.h"
#include "server/session/session_name.h"
#include "server/session/session_record.h"

namespace txl {

// A session is made neither idle nor busy. From then on it is one of both until
// it ends or is stored away, so that without those being made
//
//   created + loaded == ended + stored away + idle + busy.
//
// The table alone changes key, busy, in_slot and the times of last use of a
// record. `journaled` and the ids of an idle session stay as they are.
//
// Not thread-safe: the store's mutex guards it.
class SessionTable {
 public:
  explicit SessionTable(Clock* clock) : clock_(clock) {}

  // Null: there is none.
  RecordPtr OfKey(uint64_t key) const;
  RecordPtr Named(const SessionName& name) const;
  // At most `count` sessions of the tenant of `after` behind it, by id.
  std::vector<RecordPtr> NamedAfter(const SessionName& after,
                                    size_t count) const;

  // A new session, used now. REQUIRES: none has this name; empty: temporary.
  RecordPtr Create(SessionName name, absl::Duration ttl);
  // One that comes from the store, as its head says. REQUIRES: the same.
  RecordPtr Load(const StoredHead& head);
  void BecomeBusy(SessionRecord& record);
  // Of a session that is not idle. This is its last use; with Park it is not.
  void BecomeIdle(SessionRecord& record);
  void Park(SessionRecord& record);
  void SetInSlot(SessionRecord& record, bool in_slot);
  // A busy session gets another key, and is in no slot: rows that are found
  // under the old key are not its own.
  void ChangeKey(const RecordPtr& record);
  // No client can name it any more; it has its key until it ends.
  void Unname(const SessionRecord& record);
  // The session leaves the table, whether idle, busy or neither.
  void End(const RecordPtr& record);
  void StoreAway(const RecordPtr& record);

  // Idle sessions; null: there is none. One whose time-to-live has passed; the
  // one without a token unused for longest, and for so long.
  RecordPtr Expired() const;
  RecordPtr OldestEmpty(absl::Duration unused) const;
  // One that may leave memory: journaled, in no slot, on stable storage up to
  // its last entry when that is at most `durable`, and not used or asked for
  // for so long. Of the first few by last use.
  RecordPtr OldestAway(absl::Duration unused, uint64_t durable) const;

  int64_t size() const { return static_cast<int64_t>(by_key_.size()); }
  int64_t temporary() const { return temporary_; }
  int64_t empty() const { return static_cast<int64_t>(empty_idle_.size()); }
  const std::set<uint64_t>& in_slot() const { return in_slot_; }  // keys
  // Without bytes.
  SessionCounts counts() const;
  // Without sessions.
  StoreReport report() const;
  // Keys of sessions that left or changed theirs since the last call.
  std::vector<uint64_t> TakeEndedKeys() {
    return std::exchange(ended_keys_, {});
  }

 private:
  using Order = std::set<std::pair<absl::Duration, uint64_t>>;  // with the key

  RecordPtr Add(SessionName name, absl::Duration ttl);
  void Unpark(const SessionRecord& record);
  void Remove(const RecordPtr& record);

  Clock* const clock_;
  // Deleted ones whose turn still runs included.
  std::unordered_map<uint64_t, RecordPtr> by_key_;
  std::map<SessionName, RecordPtr> by_name_;
  Order idle_;        // all idle ones, by expiry
  Order empty_idle_;  // of them those without a token, by last use
  Order away_idle_;   // and those that are journaled and in no slot
  std::set<uint64_t> in_slot_;
  std::vector<uint64_t> ended_keys_;
  uint64_t next_key_ = 1;
  int64_t temporary_ = 0;
  SessionCounts counts_;  // but for idle
};

}  // namespace txl
