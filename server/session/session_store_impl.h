#pragma once

// What the store knows, and the steps from which its methods are made.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/byte_budget.h"
#include "server/base/clock.h"
#include "server/session/ended_ids.h"
#include "server/session/session_record.h"
#include "server/session/session_store.h"

namespace txl {

using RecordPtr = std::shared_ptr<SessionRecord>;

// What the end of a lease leaves to do without the lock: `next`, if somebody
// waited, gets a new lease of the session, which is still busy, or what ended
// it, SESSION_DELETED or SESSION_MOVED. Decided under the lock: a delete that
// comes later is for the new lease's holder, who sees it in the lease.
struct Handover {
  LeaseCallback next;
  absl::Status ended;
};

struct SessionStore::Impl {
  Impl(const SessionStoreOptions& store_options, Clock* store_clock)
      : options(store_options),
        clock(store_clock),
        ended(options.remembered_ends),
        quota(options.limits_of, options.bytes_per_slot) {}

  const SessionStoreOptions options;
  Clock* const clock;

  mutable absl::Mutex mutex;
  // Every session that has not ended, also deleted ones whose turn still runs.
  std::unordered_map<uint64_t, RecordPtr> by_key ABSL_GUARDED_BY(mutex);
  // Sessions that clients can name, in the order of ListSessions.
  std::map<SessionName, RecordPtr> by_name ABSL_GUARDED_BY(mutex);
  // Sessions on their way from the journal, and who waits for each. None is in
  // memory: it would be there twice.
  std::map<SessionName, std::vector<std::function<void(const absl::Status&)>>>
      loading ABSL_GUARDED_BY(mutex);
  // Sessions whose removal, this entry of the journal, may not be on stable
  // storage yet: until then a read finds them.
  std::map<SessionName, uint64_t> removed ABSL_GUARDED_BY(mutex);
  // The idle ones by (Clock::Monotonic of expiry, key).
  std::set<std::pair<absl::Duration, uint64_t>> idle ABSL_GUARDED_BY(mutex);
  // Those of them that hold nothing, by (Clock::Monotonic of last use, key):
  // the first to give way when memory is short.
  std::set<std::pair<absl::Duration, uint64_t>> empty_idle
      ABSL_GUARDED_BY(mutex);
  // With a journal, the idle ones that are in no slot, by (Clock::Monotonic of
  // last use, key).
  std::set<std::pair<absl::Duration, uint64_t>> away_idle
      ABSL_GUARDED_BY(mutex);
  std::set<uint64_t> in_slot ABSL_GUARDED_BY(mutex);  // keys
  EndedIds ended ABSL_GUARDED_BY(mutex);
  // Of sessions that clients can name: those of by_name, and those that are
  // stored and not in memory.
  SessionQuota quota ABSL_GUARDED_BY(mutex);
  std::vector<uint64_t> ended_keys ABSL_GUARDED_BY(mutex);

  uint64_t next_key ABSL_GUARDED_BY(mutex) = 1;
  int64_t busy_count ABSL_GUARDED_BY(mutex) = 0;
  int64_t temporary_count ABSL_GUARDED_BY(mutex) = 0;
  int64_t created_count ABSL_GUARDED_BY(mutex) = 0;
  int64_t ended_count ABSL_GUARDED_BY(mutex) = 0;
  int64_t loaded_count ABSL_GUARDED_BY(mutex) = 0;
  int64_t stored_away_count ABSL_GUARDED_BY(mutex) = 0;
  int64_t image_bytes ABSL_GUARDED_BY(mutex) = 0;
  // Bytes of records and ids of sessions that have not ended, without shared
  // ones.
  int64_t session_bytes ABSL_GUARDED_BY(mutex) = 0;
  ByteBudget shared_bytes{std::numeric_limits<int64_t>::max()};
  int64_t turn_record_bytes ABSL_GUARDED_BY(mutex) = 0;
  // Keys of sessions that keep a turn's record.
  std::list<uint64_t> records_oldest_first ABSL_GUARDED_BY(mutex);

  // What StoreLock frees after letting go of the mutex.
  std::vector<std::shared_ptr<const void>> dropped ABSL_GUARDED_BY(mutex);
  bool wake_pending ABSL_GUARDED_BY(mutex) = false;
  int wakeups_running ABSL_GUARDED_BY(mutex) = 0;
  std::function<void()> wakeup ABSL_GUARDED_BY(mutex);

  // Ends what has expired; every method that looks for sessions starts so.
  void Expire() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The named session, or SESSION_UNKNOWN, SESSION_EXPIRED or SESSION_EVICTED.
  absl::StatusOr<RecordPtr> Find(const SessionName& name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // A new record in by_key, neither idle nor busy yet. NO_SESSION_MEMORY when
  // there is no room; an empty id makes a temporary session.
  absl::StatusOr<RecordPtr> Add(SessionName name, absl::Duration ttl)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // Room for one more session, or for so many more bytes of ids: made, where it
  // is missing, by forgetting ended ids and ending empty sessions. Else
  // NO_SESSION_MEMORY. Temporary sessions may take what named ones may not.
  absl::Status MakePlace(bool temporary) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::Status MakeRoom(int64_t bytes, bool temporary)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // False: there is none, or none old enough.
  bool EndOldestEmpty() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // SessionLease::Reserve.
  absl::Status Reserve(SessionRecord& record, int64_t tokens)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Takes the bytes of so many ids of this session, instead of those before.
  // The first `shared` full pieces of them are counted where they are shared.
  void Charge(SessionRecord& record, int64_t tokens)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Charge(SessionRecord& record, int64_t tokens, size_t shared)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Nobody can name it any more: its tenant has room for another.
  void Uncount(SessionRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Host bytes for ids, records and ended ids.
  int64_t IdBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return session_bytes + shared_bytes.used() + ended.Bytes();
  }

  // Appends ids and takes their bytes. What the journal is told of it.
  JournalTokens TakeOn(SessionRecord& record, absl::Span<const int32_t> ids)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Entry `entry` of the journal left the session as it is now.
  void Entered(SessionRecord& record, uint64_t entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The last entry of the journal that keeps this session that is on stable
  // storage.
  uint64_t DurableOf(const SessionName& name) const;
  // The journal's entry of a turn's end. REQUIRES: last_turn is that turn.
  void EnterEnd(SessionRecord& record, std::shared_ptr<const TurnRecord> turn)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // A new session with its ids is entered, and all that comes of it.
  void Journal(SessionRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The same of one that begins like `parent`.
  void JournalFork(const SessionRecord& parent, SessionRecord& child)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The session goes from the journal and from the images.
  void RemoveStored(SessionRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Unstore(const SessionName& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Likewise where its time has passed: another server may know better.
  void ExpireStored(const SessionName& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // With a shared journal. The session of a busy record is acquired; `later`
  // gets its lease.
  void Own(SessionStore* store, RecordPtr record, TurnIdentity identity,
           LeaseCallback later) ABSL_LOCKS_EXCLUDED(mutex);
  // `kept` is of `found`'s session, which is in the place of the record's where
  // it is another one.
  void Owned(SessionStore* store, RecordPtr record,
             std::shared_ptr<SharedSession> found,
             std::optional<KeptImage> kept, const LeaseCallback& later)
      ABSL_LOCKS_EXCLUDED(mutex);
  void NotOwned(SessionStore* store, RecordPtr record, LeaseCallback later,
                const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex);
  absl::StatusOr<RecordPtr> Replace(const RecordPtr& record,
                                    StoredSession stored,
                                    std::optional<KeptImage> kept)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The session that this claim is of is in other hands.
  void MoveAway(const std::string& session_id,
                const std::shared_ptr<SessionClaim>& claim)
      ABSL_LOCKS_EXCLUDED(mutex);
  // An idle session's copy leaves memory.
  void LetGo(RecordPtr record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Prepare's: whether the copy of this claim, if any, is current, else what
  // is.
  void Look(const SessionName& name, std::shared_ptr<SessionClaim> held)
      ABSL_LOCKS_EXCLUDED(mutex);
  // What Prepare read comes into memory, with its image.
  void Bring(const SessionName& name, StoredSession stored)
      ABSL_LOCKS_EXCLUDED(mutex);
  StoredHead HeadOf(const SessionRecord& record) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // A session that came from the store is there, or has ended meanwhile.
  // In the place of an older copy that is idle.
  absl::Status Restore(StoredSession stored, std::optional<KeptImage> kept)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Its state of text; null without a vocabulary.
  struct RestoredText {
    std::unique_ptr<Detokenizer> now = nullptr;
    std::unique_ptr<Detokenizer> before_turn = nullptr;  // of its turn's record
  };
  absl::StatusOr<RestoredText> TextOf(const StoredSession& stored) const;
  void RestoreTurn(const StoredSession& stored,
                   std::shared_ptr<const Detokenizer> before,
                   SessionRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Takes the image where it is of these ids.
  void RestoreImage(const KeptImage& kept, SessionRecord& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // False: there is no room for so many bytes of images.
  bool MakeImageRoom(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Whoever waited for the session hears how its coming back went.
  void EndLoad(const SessionName& name, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex);
  // A session that is not in memory, and holds so many tokens, has expired.
  void EndStored(const SessionName& name, int64_t position)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Of a session that was just read of the journal: that it is still there, and
  // neither in memory nor on its way.
  bool IsOnlyStored(const SessionName& name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Whether the session may leave memory, as far as its state goes.
  bool MayStoreAway(const SessionRecord& record, absl::Duration unused) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The one unused for longest leaves memory; false: none may.
  bool StoreOldestAway(absl::Duration unused)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Takes the session out of every table.
  void Forget(const RecordPtr& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  void BecomeIdle(SessionRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void BecomeBusy(SessionRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // In the tables of idle sessions, and not any more.
  void Park(const SessionRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Unpark(const SessionRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The end of a lease: handed on, idle again, or ended where nobody can name
  // it.
  Handover EndTurn(const RecordPtr& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // REQUIRES: not idle and not busy, or idle.
  void End(const RecordPtr& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::Status TakeImage(SessionRecord& record,
                         std::shared_ptr<const StateImage> image)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The ids that the first `rows` rows depend on.
  TokenSlice IdsOfRows(const SessionRecord& record, int64_t rows) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void DropImage(SessionRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // What Fork and Rewind do, once they may.
  absl::StatusOr<RecordPtr> AddBranch(SessionRecord& parent, SessionName name,
                                      int64_t position, absl::Duration ttl)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // What Import does, once it may; takes what it needs out of `session`.
  absl::StatusOr<RecordPtr> AddImported(SessionName name, absl::Duration ttl,
                                        ImportedSession& session)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void CutTo(const RecordPtr& record, int64_t position)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The last turn's request becomes an earlier one, unless it is this one.
  void RememberRequest(SessionRecord& record, const std::string& request_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // A detokenizer in the state of text behind these ids.
  std::unique_ptr<Detokenizer> DetokenizerBehind(
      const TokenSequence& ids) const;
  // `bytes`: the turn's, counted before the mutex was taken.
  void KeepTurnRecord(SessionRecord& record,
                      std::shared_ptr<const TurnRecord> turn, int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void DropTurnRecord(SessionRecord& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // Appends at most `count` > 0 sessions of the tenant of `after` after it;
  // whether there are more behind them.
  bool ListSome(const SessionName& after, size_t count,
                std::vector<SessionInfo>& sessions) ABSL_LOCKS_EXCLUDED(mutex);
  // A page of at most `size` sessions from what the journal lists.
  SessionPage PageOf(const std::vector<StoredInfo>& stored, size_t size)
      ABSL_LOCKS_EXCLUDED(mutex);
  SessionInfo Info(const SessionRecord& record) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  SessionReport ReportOf(const SessionRecord& record) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
};

// Holds the mutex. After letting go of it it frees what was dropped meanwhile,
// which may be large, and calls the wake-up when a session ended or became
// idle: the scheduler may take its own locks there.
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
