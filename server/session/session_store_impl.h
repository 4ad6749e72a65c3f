#pragma once

// The parts of the store under its one mutex, and the steps that change more
// than one of them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/session/session_entries.h"
#include "server/session/session_memory.h"
#include "server/session/session_quota.h"
#include "server/session/session_record.h"
#include "server/session/session_store.h"
#include "server/session/session_table.h"

namespace txl {

// What the end of a lease leaves to do without the lock: `next`, if somebody
// waited, gets a new lease of the session, which is still busy, or what ended
// it, SESSION_DELETED or SESSION_MOVED. Decided under the lock: a delete that
// comes later is for the new lease's holder, who sees it in the lease.
struct Handover {
  LeaseCallback next;
  absl::Status ended;
};

// The name of a new session, where that and its time-to-live are allowed; a
// random one where `wanted` has no id.
absl::StatusOr<SessionName> NameOfNew(const SessionName& wanted,
                                      std::optional<absl::Duration> ttl,
                                      const SessionStoreOptions& options);

// Whom a session's end or idleness is told: the scheduler. A call is asked for
// with the mutex and made without it; a function that was replaced is called no
// more once `running` is 0. Not thread-safe: the store's mutex guards it.
class SessionWakeup {
 public:
  void Set(std::function<void()>& function) { function_.swap(function); }
  void Ask() { asked_ = true; }
  // What to call, if that was asked for; it runs until Ended. Null: nothing.
  std::function<void()> Take() {
    if (!std::exchange(asked_, false) || function_ == nullptr) return nullptr;
    ++running_;
    return function_;
  }
  void Ended() { --running_; }
  int running() const { return running_; }

 private:
  std::function<void()> function_;
  bool asked_ = false;
  int running_ = 0;
};

struct SessionStore::Impl {
  Impl(SessionStore* of, const SessionStoreOptions& store_options,
       Clock* store_clock);

  SessionStore* const store;
  const SessionStoreOptions options;
  Clock* const clock;

  mutable absl::Mutex mutex;
  // Of sessions that clients can name: those in memory, and those that are
  // stored and not in memory.
  SessionQuota quota ABSL_GUARDED_BY(mutex);
  SessionMemory memory ABSL_GUARDED_BY(mutex);
  SessionTable table ABSL_GUARDED_BY(mutex);
  EndedIds ended ABSL_GUARDED_BY(mutex);
  SessionEntries entries ABSL_GUARDED_BY(mutex);
  AwaySessions away ABSL_GUARDED_BY(mutex);
  SessionWakeup wakeup ABSL_GUARDED_BY(mutex);

  // Lives of sessions.

  // Ends what has expired.
  void Expire() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The named session, after Expire. FIELD_INVALID, SESSION_UNKNOWN,
  // SESSION_EXPIRED or SESSION_EVICTED.
  absl::StatusOr<RecordPtr> Find(const SessionName& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Find, for a session that is idle; else SESSION_BUSY.
  absl::StatusOr<RecordPtr> FindIdle(const SessionName& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // A new session, once there is room for it and `bytes` of ids; an empty name
  // makes a temporary one. NO_SESSION_MEMORY.
  absl::StatusOr<RecordPtr> Add(SessionName name, absl::Duration ttl,
                                int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // REQUIRES: no turn runs on it, or its lease just ended.
  void End(const RecordPtr& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Its copy leaves memory for the store.
  void LetGo(const RecordPtr& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // What both do.
  void Forget(const RecordPtr& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // A busy session that no client can name any more: its turn has to look.
  void Unname(SessionRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The end of a lease: the session is handed on, is idle again, or ends where
  // no client can name it.
  Handover EndTurn(const RecordPtr& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // Room for one more session with so many bytes of ids, or for so many more
  // bytes: made, where it is missing, by letting sessions go, forgetting ended
  // ids and ending empty sessions. Else NO_SESSION_MEMORY. Temporary sessions
  // may take what named ones may not.
  absl::Status MakePlace(int64_t bytes, bool temporary)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::Status MakeRoom(int64_t bytes, bool temporary)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // False: there is no room for so many bytes of images.
  bool MakeImageRoom(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // One session gives way; false: none may.
  bool EndOldestEmpty() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  bool StoreOldestAway(absl::Duration unused)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // What turns do.

  // Appends ids and takes their bytes. What the journal is told of it.
  JournalTokens TakeOn(SessionRecord& record, absl::Span<const int32_t> ids)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // Sessions that are made of others (session_branches.cc).

  // What Fork and Rewind do, once they may.
  absl::StatusOr<RecordPtr> AddBranch(SessionRecord& parent, SessionName name,
                                      int64_t position, absl::Duration ttl)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void CutTo(const RecordPtr& record, int64_t position)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The image of another one, where it is of its ids and there is room.
  void ShareImage(const std::shared_ptr<const StateImage>& image,
                  SessionRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // A detokenizer in the state of text behind these ids.
  std::unique_ptr<Detokenizer> DetokenizerBehind(
      const TokenSequence& ids) const;
  // The ids that the first `rows` rows depend on.
  TokenSlice IdsOfRows(const SessionRecord& record, int64_t rows) const;

  // Sessions that are stored (session_storage.cc).

  // The session goes from the journal and from the images.
  void RemoveStored(SessionRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // A session that is not in memory, and holds so many tokens, has expired.
  void EndStored(const SessionName& name, int64_t position)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // What was just read of it in the store counts.
  bool IsOnlyStored(const SessionName& name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // A session that came from the store is there, or has ended meanwhile.
  // In the place of an older copy that is idle.
  absl::Status Restore(StoredSession stored, std::optional<KeptImage> kept)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Takes the image where it is of these ids.
  void RestoreImage(const KeptImage& kept, SessionRecord& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // What Prepare read comes into memory, with its image.
  void Bring(const SessionName& name, StoredSession stored)
      ABSL_LOCKS_EXCLUDED(mutex);
  // Tells the callers that waited for the session how its load ended.
  void EndLoad(const SessionName& name, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex);

  // With a shared journal. Prepare's: whether the copy of this claim, if any,
  // is current, else what is.
  void Look(const SessionName& name, std::shared_ptr<SessionClaim> held)
      ABSL_LOCKS_EXCLUDED(mutex);
  // Look, with the copy that is there now.
  void LookAgain(const SessionName& name) ABSL_LOCKS_EXCLUDED(mutex);
  // The session of a busy record is acquired; `later` gets its lease.
  void Own(const RecordPtr& record, const TurnIdentity& identity,
           LeaseCallback later) ABSL_LOCKS_EXCLUDED(mutex);
  // `kept` is of `found`'s session, which is in the place of the record's where
  // it is another one.
  void Owned(RecordPtr record, SharedSession found,
             std::optional<KeptImage> kept, const LeaseCallback& later)
      ABSL_LOCKS_EXCLUDED(mutex);
  void NotOwned(const RecordPtr& record, const LeaseCallback& later,
                const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex);
  // The Acquire was answered. Returns whether calls wait to look at it.
  bool EndAcquire(SessionRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::StatusOr<RecordPtr> Replace(const RecordPtr& record,
                                    StoredSession stored,
                                    std::optional<KeptImage> kept)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The session that this claim is of is in other hands.
  void MoveAway(const std::string& session_id,
                const std::shared_ptr<SessionClaim>& claim)
      ABSL_LOCKS_EXCLUDED(mutex);

  // What clients see of it.

  SessionInfo Info(const SessionRecord& record) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // 0 without a journal.
  int64_t DurablePositionOf(const SessionRecord& record) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
};

// Holds the mutex. After letting go of it it frees what was dropped meanwhile,
// and calls the wake-up: the scheduler may take its own locks there.
class ABSL_SCOPED_LOCKABLE StoreLock {
 public:
  explicit StoreLock(SessionStore::Impl* impl)
      ABSL_EXCLUSIVE_LOCK_FUNCTION(impl->mutex);
  ~StoreLock() ABSL_UNLOCK_FUNCTION();
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

 private:
  SessionStore::Impl* const impl_;
};

}  // namespace txl
