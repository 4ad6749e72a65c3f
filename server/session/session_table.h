#pragma once

// Which sessions are in memory, by key and by name, which of them are idle,
// which are on their way to the store or from it, and which have ended.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/metrics/server_status.h"
#include "server/session/session_info.h"
#include "server/session/session_journal.h"
#include "server/session/session_name.h"
#include "server/session/session_record.h"

namespace txl {

enum class SessionEnd {
  kExpired,  // its time-to-live passed
  kEvicted,  // it was empty and others needed its place
};

// Remembers which sessions the server ended by itself, so that their owners
// hear why instead of "unknown". Bounded: the oldest are forgotten first. Not
// thread-safe.
class EndedIds {
 public:
  // Capacity 0 remembers nothing.
  explicit EndedIds(int64_t capacity) : capacity_(capacity) {}

  // The newest now, also when it was there already.
  void Remember(const std::string& session_id, SessionEnd how);
  // The id is in use again.
  void Forget(const std::string& session_id);
  // False: there is none.
  bool ForgetOldest();
  // Absent: not remembered.
  std::optional<SessionEnd> Find(const std::string& session_id) const;
  // Host bytes that they take.
  int64_t Bytes() const;

 private:
  struct Entry {
    std::string session_id;
    SessionEnd how;
  };

  const int64_t capacity_;
  std::list<Entry> oldest_first_;
  std::unordered_map<std::string, std::list<Entry>::iterator> by_id_;
};

// Sessions on their way between memory and the store.
//
// One read at a time brings a session, and what a read shows counts only where
// nothing of the session is on its way: a session that is coming would be there
// twice, and one whose removal is not on stable storage yet would come again.
//
// Where other servers change sessions too, a read does not count for those who
// come while it runs: what it has seen may be older than what they were told.
// They wait for another one.
//
// Not thread-safe: the store's mutex guards it.
class AwaySessions {
 public:
  using Then = std::function<void(const absl::Status&)>;

  // `shared`: other servers change sessions, too.
  explicit AwaySessions(bool shared) : shared_(shared) {}

  // `then` waits for the session. True: as the first one, so that the caller
  // has to bring it and to end with TakeWaiting.
  bool Await(const SessionName& name, Then then) {
    const auto [coming, first] = coming_.try_emplace(name);
    Waiting& waiting = coming->second;
    (first || !shared_ ? waiting.now : waiting.later)
        .push_back(std::move(then));
    return first;
  }
  struct Waited {
    std::vector<Then> now;
    // Others wait: the caller has to bring it again, and to end as before. Else
    // the session is on its way no more.
    bool again = false;
  };
  Waited TakeWaiting(const SessionName& name) {
    const auto coming = coming_.find(name);
    Waiting& waiting = coming->second;
    Waited waited = {std::exchange(waiting.now, std::move(waiting.later)), {}};
    waiting.later.clear();
    waited.again = !waiting.now.empty();
    if (!waited.again) coming_.erase(coming);
    return waited;
  }

  // This entry of the journal removes it.
  void Removed(const SessionName& name, uint64_t entry) {
    removed_[name] = entry;
  }
  // Whether what was read of it counts; entries up to `durable` are on stable
  // storage.
  bool IsSettled(const SessionName& name, uint64_t durable) const {
    const auto removed = removed_.find(name);
    return coming_.count(name) == 0 &&
           (removed == removed_.end() || removed->second <= durable);
  }
  // Removals up to `durable` need not be remembered.
  void Forget(uint64_t durable) {
    std::erase_if(removed_, [durable](const auto& each) {
      return each.second <= durable;
    });
  }

 private:
  struct Waiting {
    std::vector<Then> now, later;
  };

  const bool shared_;
  std::map<SessionName, Waiting> coming_;
  std::map<SessionName, uint64_t> removed_;  // with the entry
};

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
